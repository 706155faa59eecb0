// Where the chart keeps mission archives and databases.

import { describe, expect, it } from 'vitest';
import { helm, noHelm, podsOf, render, valuesOf } from './chart.ts';

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: archives not checked' : 'mission archives', () => {
  function claimOf(name: string, changes: Record<string, unknown> = {}) {
    const objects = render(name, changes);
    const [, pod] = podsOf(objects).find(([of]) => of === 'management') ?? [];
    const { volumeMounts = [], env = [] } = pod?.containers.find((each) => each.name === 'management') ?? {};
    const place = `${env.find((each) => each.name === 'DATA_DIR')?.value}/mission-archives`;
    const volume = volumeMounts.find(({ mountPath }) => mountPath === place)?.name;
    const { persistentVolumeClaim: used } = (pod?.volumes?.find((each) => each['name'] === volume) ?? {}) as {
      persistentVolumeClaim?: { claimName: string };
    };
    const claims = objects.filter(({ kind }) => kind === 'PersistentVolumeClaim');
    return { name: used?.claimName, spec: claims.find(({ metadata }) => metadata.name === used?.claimName)?.spec };
  }

  it('are in one claim, which every machine with a replica can mount', () => {
    expect(claimOf('one-machine')).toEqual({
      name: 'mission-archives',
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } },
    });
    expect(claimOf('cluster').spec).toEqual({
      accessModes: ['ReadWriteMany'],
      storageClassName: 'cephfs',
      resources: { requests: { storage: '20Gi' } },
    });
    expect(claimOf('cluster', { 'management.archives.storageClass': 'nfs' }).spec).toMatchObject({
      storageClassName: 'nfs',
    });
  });

  it('take a claim that is there', () => {
    expect(claimOf('direct')).toEqual({ name: 'tak-archives', spec: undefined });
    const claims = render('direct').filter(({ kind }) => kind === 'PersistentVolumeClaim');
    expect(claims.map(({ metadata }) => metadata.name)).not.toContain('mission-archives');
  });
});

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: databases not checked' : 'a database', () => {
  const specsOf = (changes: Record<string, unknown> = {}) =>
    render('cluster', changes).flatMap(({ kind, spec }) => (kind === 'Cluster' ? [spec] : []));

  it('of one instance lets its machine be drained', () => {
    expect(specsOf().map((spec) => spec?.['enablePDB'])).toEqual([true, true]);
    expect(specsOf({ 'databases.instances': 1 }).map((spec) => spec?.['enablePDB'])).toEqual([false, false]);
  });

  it('is pulled from the registry from which everything is', () => {
    for (const spec of specsOf()) expect(spec?.['imagePullSecrets']).toEqual([{ name: 'registry' }]);
  });

  it('of a release takes a claim that is there', () => {
    const claim = 'core.release.databaseStorage.existingClaim=restored';
    const { output } = helm('template', 'holdfast', '.', '-f', valuesOf('release'), '--set', claim);
    expect(output).toContain('persistentVolumeClaim: { claimName: restored }');
    expect(output).not.toContain('name: core-database-data\n  labels');
  });
});
