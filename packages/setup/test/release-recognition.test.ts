// Which release an archive is told to be, and which ones may follow on which.

import { describe, expect, it } from 'vitest';
import { checkUpgrade, recognize, topFolder } from '../archive/reading.ts';
import { releaseEntries, releaseName } from './release-archive.ts';

const namesOf = (version: string, variant?: 'hardened'): Set<string> => {
  const options = { version, ...(variant === undefined ? {} : { variant }) };
  const top = releaseName(options);
  return new Set(releaseEntries(options).map(({ name }) => name.slice(top.length + 1)));
};
const docker = (version: string) => ({
  version,
  variant: 'docker' as const,
  coreDockerfile: '',
  databaseDockerfile: '',
});

describe('a release', () => {
  it('is known by its version, its variant and the Dockerfiles of that', () => {
    expect(recognize('a.zip', 'takserver-docker-5.7-RELEASE-8', namesOf('5.7-RELEASE-8'), '5.7-RELEASE-8\r\n')).toEqual(
      {
        version: '5.7-RELEASE-8',
        variant: 'docker',
        coreDockerfile: 'docker/Dockerfile.takserver',
        databaseDockerfile: 'docker/Dockerfile.takserver-db',
      },
    );
    const top = 'takserver-docker-hardened-5.7-RELEASE-8';
    expect(recognize('a.zip', top, namesOf('5.7-RELEASE-8', 'hardened'), '5.7-RELEASE-8')).toEqual({
      version: '5.7-RELEASE-8',
      variant: 'hardened',
      coreDockerfile: 'docker/Dockerfile.hardened-takserver',
      databaseDockerfile: 'docker/Dockerfile.hardened-takserver-db',
    });
  });

  it.each(['5.0-RELEASE-1', '5.3.1-RELEASE-12', '6.0-RELEASE-1'])('%s is new enough', (version) => {
    expect(recognize('a.zip', `takserver-docker-${version}`, namesOf(version), version).version).toBe(version);
  });

  it('older than 5.0 is refused, with why', () => {
    const old = () =>
      recognize('a.zip', 'takserver-docker-4.10-RELEASE-50', namesOf('4.10-RELEASE-50'), '4.10-RELEASE-50');
    expect(old).toThrow('a.zip is TAK Server 4.10-RELEASE-50. Version 5.0 or newer is needed (PostgreSQL 15');
  });

  it.each(['', '5.7', 'HEAD', '5.8-RELEASE-1', '5.7-RELEASE-8; rm -rf /'])(
    'whose version file says %j is refused',
    (text) => {
      const reported = () => recognize('a.zip', 'takserver-docker-5.7-RELEASE-8', namesOf('5.7-RELEASE-8'), text);
      expect(reported).toThrow(`tak/version.txt says ${JSON.stringify(text)}`);
    },
  );

  it.each(['takserver-docker-full-5.7-RELEASE-8', 'takserver-docker-hardened-full-5.7-RELEASE-8'])(
    'of the variant %s is refused, which names those that are known',
    (top) => {
      expect(() => topFolder('a.zip', [`${top}/`, `${top}/tak/`])).toThrow(
        'Known variants: docker (docker/Dockerfile.takserver, docker/Dockerfile.takserver-db) and hardened (',
      );
    },
  );

  it('is refused when the Dockerfiles of its variant are not there', () => {
    const reports = () =>
      recognize('a.zip', 'takserver-docker-5.7-RELEASE-8', namesOf('5.7-RELEASE-8', 'hardened'), '5.7-RELEASE-8');
    expect(reports).toThrow('a.zip has no docker/Dockerfile.takserver and no docker/Dockerfile.takserver-db');
  });

  it('may follow on itself and on an older one of its variant', () => {
    for (const [to, from] of [
      ['5.7-RELEASE-8', '5.7-RELEASE-8'],
      ['5.7-RELEASE-10', '5.7-RELEASE-9'],
      ['5.10-RELEASE-1', '5.9-RELEASE-30'],
      ['5.7.1-RELEASE-1', '5.7-RELEASE-8'],
      ['6.0-RELEASE-1', '5.9-RELEASE-9'],
    ] as const) {
      expect(() => checkUpgrade('a.zip', docker(to), { version: from, variant: 'docker' })).not.toThrow();
      if (to !== from)
        expect(() => checkUpgrade('a.zip', docker(from), { version: to })).toThrow(
          `older than this stack's release ${to}`,
        );
    }
  });

  it('of another variant does not follow: its PostgreSQL may be another one', () => {
    const notify = () =>
      checkUpgrade('a.zip', docker('5.8-RELEASE-1'), { version: '5.7-RELEASE-8', variant: 'hardened' });
    expect(notify).toThrow('a.zip is the variant docker, but this stack uses the variant hardened');
  });

  it('follows on nothing that is no version', () => {
    expect(() => checkUpgrade('a.zip', docker('5.8-RELEASE-1'), { version: 'mine' })).toThrow(
      'CORE_RELEASE in .env is not a release version: "mine"',
    );
  });
});
