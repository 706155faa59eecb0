// The compose files as they are written: what can be held without Docker Compose.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  COMPOSE_DIRECTORY,
  COMPOSE_FILES,
  OUR_IMAGE,
  readComposeFile,
  REPOSITORY,
  type Service,
  VERSION,
} from '../../packages/setup/test/compose.ts';
import { isSettingName } from '../../shared/settings/table.ts';

interface ComposeFile {
  services: Record<string, (Partial<Service> & { extends?: { service: string }; build?: unknown }) | null>;
}

const read = (name: string): ComposeFile => readComposeFile(name) as unknown as ComposeFile;
const text = (name: string): string => readFileSync(join(COMPOSE_DIRECTORY, name), 'utf8');

/** Names in the files that are no settings of ours, and why. */
const OTHERS: Record<string, string> = {
  TZ: 'the time zone of every container, read by the programs in them',
  CORE_RELEASE: 'which TAK Server release the images on this machine were made from',
  COMPOSE_PROJECT_NAME: 'set by Docker Compose itself',
  HOLDFAST_THRESHOLDS: 'the sum of the thresholds file, set by start.sh',
};

describe('compose files', () => {
  it('are the ones that the documentation of the layers knows', () => {
    expect(COMPOSE_FILES).toEqual([
      'compose.cloudtak.yaml',
      'compose.cluster.test.yaml',
      'compose.cluster.yaml',
      'compose.dev.yaml',
      'compose.direct.yaml',
      'compose.light.yaml',
      'compose.local.example.yaml',
      'compose.restore.yaml',
      'compose.runtime.yaml',
      'compose.stream.yaml',
      'compose.test.yaml',
      'compose.yaml',
      'program.yaml',
    ]);
  });

  it('pin every image to a version, and name it once', () => {
    const images = COMPOSE_FILES.flatMap((name) =>
      [
        ...text(name).matchAll(
          /^\s*(?:image|[a-z-]+): (?:&\S+ )?((?:[\w.-]+\/)*[\w.-]+:[\w.${}:-]+)(?:@sha256:[0-9a-f]{64})?$/gm,
        ),
      ].map(([, image]) => image ?? ''),
    );
    expect(images.toSorted()).toEqual([
      expect.stringMatching(/^bluenviron\/mediamtx:\d+\.\d+\.\d+$/),
      expect.stringMatching(/^caddy:2\.11\.\d+-alpine$/),
      expect.stringMatching(/^ghcr\.io\/dfpc-coe\/cloudtak-api:v\d+\.\d+\.\d+$/),
      expect.stringMatching(/^ghcr\.io\/goauthentik\/ldap:\d+\.\d+\.\d+$/),
      expect.stringMatching(/^ghcr\.io\/goauthentik\/server:\d+\.\d+\.\d+$/),
      expect.stringMatching(/^haproxy:3\.\d+\.\d+-alpine$/),
      'localhost/holdfast-core-database:${CORE_RELEASE:-unbuilt}',
      'localhost/holdfast-core:${CORE_RELEASE:-unbuilt}',
      OUR_IMAGE,
      expect.stringMatching(/^minio\/minio:RELEASE\./),
      expect.stringMatching(/^nats:2\.\d+\.\d+-alpine$/),
      expect.stringMatching(/^nodered\/node-red:\d+\.\d+\.\d+$/),
      expect.stringMatching(/^postgis\/postgis:17-\d+\.\d+-alpine$/),
    ]);
    expect(text('program.yaml')).toContain(`args: { RELEASE: ${VERSION} }`);
    const [server, ldap] = ['server', 'ldap'].map(
      (part) => images.find((image) => image.startsWith(`ghcr.io/goauthentik/${part}:`))?.split(':')[1],
    );
    expect(server).toBe(ldap);
  });

  it('give every service its image by its layer or by the template of our programs', () => {
    const known = new Set<string>();
    for (const name of [
      'compose.yaml',
      'compose.light.yaml',
      'compose.runtime.yaml',
      'compose.restore.yaml',
      'compose.cloudtak.yaml',
      'compose.cluster.yaml',
    ])
      for (const [service, written] of Object.entries(read(name).services)) {
        if (written === null) continue;
        if (written.image !== undefined || written.extends?.service === 'program') known.add(service);
        expect([name, service, known.has(service)]).toEqual([name, service, true]);
      }
    for (const name of COMPOSE_FILES.filter((each) => each !== 'program.yaml'))
      expect(Object.keys(read(name).services).filter((service) => !known.has(service))).toEqual([]);
  });

  it('run our programs under the init of Docker: a stop in the first moments of a start would be lost, and waited out', () => {
    expect(read('program.yaml').services['program']).toMatchObject({ init: true });
  });

  it('have no profiles, no service in the network of the host, and no container name that two projects would share', () => {
    for (const name of COMPOSE_FILES)
      for (const [service, written] of Object.entries(read(name).services)) {
        const keys = Object.keys(written ?? {});
        expect([
          name,
          service,
          keys.filter((key) => ['profiles', 'privileged', 'pid', 'ipc', 'container_name', 'links'].includes(key)),
        ]).toEqual([name, service, []]);
        expect(['host', 'bridge']).not.toContain(written?.network_mode);
      }
  });

  it('put in place of ${VARIABLE} settings of ours, and few others', () => {
    const names = COMPOSE_FILES.flatMap((name) => {
      const uncommented = text(name).replaceAll(/^\s*#.*$/gm, '');
      return [...uncommented.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map(([, variable]) => variable ?? '');
    });
    expect([...new Set(names)].filter((name) => !isSettingName(name) && OTHERS[name] === undefined)).toEqual([]);
    expect(Object.keys(OTHERS).filter((name) => !names.includes(name))).toEqual([]);
  });

  it('ask for a secret with a sentence that names the set-up script', () => {
    const requests = COMPOSE_FILES.flatMap((name) =>
      [...text(name).matchAll(/\$\{[A-Z_]*(?:PASSWORD|KEY|TOKEN)\b[^}]*\}/g)].map(([all]) => all),
    );
    expect(requests.length).toBeGreaterThan(20);
    // Compose asks before the light layer, which has none of these, takes their services away;
    // identity-setup asks for them.
    const late = ['${IDENTITY_BOOTSTRAP_TOKEN:-}', '${IDENTITY_ADMIN_PASSWORD:-}'];
    const others = requests.filter((each) => !late.includes(each));
    expect(others.filter((each) => !/^\$\{\w+:\?run \.\/scripts\/setup\.sh, which makes one\}$/.test(each))).toEqual(
      [],
    );
  });

  it('name places in the repository that are there', () => {
    const named = COMPOSE_FILES.flatMap((name) =>
      [...text(name).matchAll(/source: (\.{1,2}\/[^\s,}]+)|dockerfile: (\S+)/g)].map(([, source, dockerfile]) =>
        source === undefined ? join(REPOSITORY, dockerfile ?? '') : join(COMPOSE_DIRECTORY, source),
      ),
    );
    expect(named.length).toBeGreaterThan(4);
    expect(named.filter((path) => !existsSync(path))).toEqual([]);
  });
});
