// The module `updates`: which parts of which stack are watched, what is behind and since when, and a failed upgrade.

import { describe, expect, it } from 'vitest';
import { imageVersion } from '@holdfast/kit/release';
import { githubRepository, pinnedImages } from '@holdfast/setup/build';
import { partsOf } from '../../shared/health/parts.ts';
import type { Release, UpgradeRecord } from '../../shared/host/port.ts';
import type { Mode } from '../../shared/settings/rules.ts';
import { ROOT } from '../house.ts';
import { measure } from './fake-measure.ts';
import type { World } from './fake-monitored.ts';

const verdict = async (name: string, change: (of: World) => void): Promise<[string, string]> => {
  const { status, message } = await measure(name, change);
  return [status, message];
};

describe('updates', () => {
  it('shows a failed upgrade until somebody clears it', async () => {
    const upgrade: UpgradeRecord = {
      outcome: 'returned',
      from: '0.1.0',
      to: '0.2.0',
      at: '2026-03-04T05:00:00.000Z',
      reason: 'Version 0.2.0 does not work.',
      set_aside: '/data/set-aside-upgrade-0.2.0',
      way_back: null,
      cleared: false,
    };
    const { status, message, remedies } = await measure('updates', (of) => (of.upgrade = upgrade));
    expect([status, message]).toEqual([
      'warning',
      'the upgrade to 0.2.0 on 2026-03-04 05:00:00 UTC failed and 0.1.0 runs again: Version 0.2.0 does not work.',
    ]);
    expect(remedies[0]).toMatch(/set-aside-upgrade-0\.2\.0.*check --clear/);
    expect(remedies[0]?.length).toBeLessThanOrEqual(300);
    const stuck = await verdict('updates', (of) => (of.upgrade = { ...upgrade, outcome: 'stuck' }));
    expect(stuck).toEqual(['critical', expect.stringContaining('0.1.0 did not start either')]);
    for (const change of [{ cleared: true }, { outcome: 'upgraded' as const }])
      expect((await verdict('updates', (of) => (of.upgrade = { ...upgrade, ...change })))[0]).toBe('ok');
  });

  it('are a note that names the newest release, since when it is behind, and its notes', async () => {
    const { message, remedies, status } = await measure('updates', (of) => {
      of.now = new Date('2026-03-04T05:06:07Z');
      const listed = [
        { version: '17.9', releasedAt: new Date('2026-02-01') },
        { version: '16.15', releasedAt: new Date('2026-02-01') },
        { version: '16.14', releasedAt: new Date('2025-11-01') },
        { version: '16.16', releasedAt: new Date('2026-03-01') },
      ];
      of.releases = { ...of.releases, postgresql: listed };
    });
    expect([status, message]).toEqual([
      'note',
      'PostgreSQL 16.16 is available (installed: 16.14, behind for 31 days).',
    ]);
    expect(remedies[0]).toBe('Release notes of PostgreSQL 16.16: https://www.postgresql.org/docs/release/16.16/');
  });

  it('of Holdfast itself are not compared without a repository, which is said', async () =>
    expect(await verdict('updates', () => undefined)).toEqual([
      'ok',
      expect.stringMatching(
        /^Up to date: PostgreSQL .* Holdfast itself isn't compared: UPDATES_REPOSITORY is not set\.$/,
      ),
    ]));

  it('without network are ok and say so', async () =>
    expect(await verdict('updates', (of) => (of.releases = undefined))).toEqual([
      'ok',
      "Couldn't check for updates: no network (no network).",
    ]));

  it('without network are looked for again soon, not a quarter of a day later', async () => {
    expect((await measure('updates', (of) => (of.releases = undefined))).againSeconds).toBe(600);
    expect((await measure('updates')).againSeconds).toBeUndefined();
  });

  it('are those of every part of the stack in containers, at the versions that compose.yaml pins', async () => {
    const facts = {
      repository: 'example/holdfast',
      coreRelease: '5.7-RELEASE-8',
      databaseVersion: async () => '16.14',
      identityVersion: async () => '2026.8.3',
      nodeVersion: 'v24.21.0',
    };
    const named = (mode: Mode): string[] => partsOf({ ...facts, mode }, pinnedImages(ROOT)).map(({ name }) => name);
    expect(named('embedded')).toEqual(['Holdfast', 'PostgreSQL', 'Node.js']);
    expect(named('light')).toEqual([...named('embedded'), 'Caddy', 'Node-RED', 'MediaMTX']);
    expect(named('container')).toEqual([...named('light'), 'authentik', 'TAK Server']);
    const versions = partsOf({ ...facts, mode: 'container' }, pinnedImages(ROOT)).map(({ version }) => version());
    for (const version of await Promise.all(versions)) expect(version).toMatch(/^v?\d+\.\d+|^development$/);
  });

  it('are read from an image that is pinned by its digest, too', () =>
    expect(imageVersion(`caddy:2.11.3-alpine@sha256:${'1'.repeat(64)}`)).toBe('2.11.3'));

  it.each([
    ['github:example/holdfast', 'example/holdfast'],
    ['example/hold.fast', 'example/hold.fast'],
    ['git+https://github.com/example/holdfast.git', 'example/holdfast'],
    [{ type: 'git', url: 'git@github.com:example/holdfast.git' }, 'example/holdfast'],
    [{ type: 'git', url: 'https://git.example.org/example/holdfast.git' }, ''],
    ['gitlab:example/holdfast', ''],
    [undefined, ''],
  ])('of Holdfast itself are those of the repository in package.json: %j', (repository, found) =>
    expect(githubRepository(repository)).toBe(found),
  );

  it('of a TAK Server are compared by their numbers, and reported only as far as they are public', async () => {
    const tak = (releases: Partial<Release>[]) => (of: World) => {
      const facts = {
        mode: 'container',
        repository: undefined,
        coreRelease: '5.7-RELEASE-8',
        nodeVersion: '',
      } as const;
      const version = async (): Promise<string> => '1.0';
      const parts = partsOf({ ...facts, databaseVersion: version, identityVersion: version }, {});
      of.moreParts = parts.filter(({ name }) => name === 'TAK Server');
      of.releases = { ...of.releases, 'TAK-Product-Center/Server': releases };
    };
    expect(await verdict('updates', tak([{ version: '5.7-RELEASE-14' }, { version: '5.6-RELEASE-30' }]))).toEqual([
      'note',
      'TAK Server 5.7-RELEASE-14 is available (installed: 5.7-RELEASE-8).',
    ]);
    expect((await verdict('updates', tak([{ version: '5.7-RELEASE-8' }])))[0]).toBe('ok');
    expect((await verdict('updates', tak([])))[0]).toBe('ok');
  });

  it('that cannot be compared are never ok', async () => {
    expect((await verdict('updates', (of) => (of.nodeVersion = '99.0.0')))[0]).toBe('note');
    expect((await verdict('updates', (of) => (of.databaseError = 'away')))[0]).toBe('note');
  });
});
