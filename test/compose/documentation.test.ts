// docs/containers.md says what the files say: layers, ports, networks, volumes.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { COMPOSE_FILES, readComposeFile, REPOSITORY } from '../../packages/setup/test/compose.ts';

/** In one order, for lists whose order says nothing. */
const sorted = (rows: readonly (readonly unknown[])[]): string[] => rows.map((row) => row.join(' | ')).toSorted();

interface Written {
  services: Record<string, { ports?: string[]; image?: string; networks?: string[] | Record<string, unknown> } | null>;
  networks?: Record<string, { internal?: boolean }>;
  volumes?: Record<string, unknown>;
}

const page = readFileSync(join(REPOSITORY, 'docs/containers.md'), 'utf8');
const read = (name: string): Written => readComposeFile(name) as unknown as Written;

/** The rows below a heading, cell by cell. */
function rowsOf(heading: string): string[][] {
  const section = page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) => line.slice(2, -2).split(' | '));
}

const plain = (cell: string | undefined): string => (cell ?? '').replaceAll('`', '');

it('the documentation lists every layer', () => {
  const files = COMPOSE_FILES.filter((name) => name !== 'program.yaml');
  expect(
    rowsOf('Layers')
      .map(([file]) => plain(file))
      .toSorted(),
  ).toEqual(files.toSorted());
});

it('the documentation lists every port that a layer adds to the host', () => {
  const documented = rowsOf('Ports').flatMap(([ports, container, layer, purpose]) =>
    plain(ports)
      .split(', ')
      .map((port) => [
        port,
        container,
        plain(layer),
        purpose?.includes('on 127.0.0.1') === true ? '127.0.0.1' : '0.0.0.0',
      ]),
  );
  const bound = (name: string): string[][] =>
    Object.entries(read(name).services).flatMap(([container, service]) =>
      (service?.ports ?? []).map((port) => {
        const [, address = '', published = ''] = /^([\d.]+):(.+):\d+$/.exec(port) ?? [];
        const words = published.startsWith('$') ? 'CORE_ENROLLMENT_PORT (8446)' : published;
        return [words, container, name, address];
      }),
    );
  const inBase = new Set(bound('compose.yaml').map(([port, container]) => `${container}:${port}`));
  const added = bound('compose.dev.yaml');
  const files = [...bound('compose.yaml'), ...added.filter(([port, container]) => !inBase.has(`${container}:${port}`))];
  expect(sorted(documented)).toEqual(sorted(files));
});

it('the documentation lists every network of the light stack with who is in it', () => {
  const members = new Map<string, string[]>();
  const layers = ['compose.yaml', 'compose.light.yaml', 'compose.runtime.yaml', 'compose.cloudtak.yaml'].map(read);
  for (const { services } of layers)
    for (const [service, written] of Object.entries(services)) {
      if (/^(?:authentik-|identity-setup$)/.test(service) || written === null) continue;
      const networks = Array.isArray(written.networks) ? written.networks : Object.keys(written.networks ?? {});
      for (const network of networks) members.set(network, [...(members.get(network) ?? []), service]);
    }
  const networks = Object.entries(
    Object.assign({}, ...layers.map((layer) => layer.networks ?? {})) as NonNullable<Written['networks']>,
  );
  const documented = rowsOf('Networks').map(([name, who, out]) => [plain(name), who, out]);
  const written = networks.map(([name, { internal }]) => [
    name,
    members.get(name)?.toSorted().join(', '),
    internal === true ? 'no' : 'yes',
  ]);
  expect(sorted(documented)).toEqual(sorted(written));
});

it('the documentation lists every volume of the light stack', () => {
  const ofProduction = ['identity-data', 'outpost-token'];
  const volumes = Object.keys(read('compose.yaml').volumes ?? {}).filter((name) => !ofProduction.includes(name));
  expect(
    rowsOf('Back up')
      .map(([name]) => plain(name))
      .toSorted(),
  ).toEqual(volumes.toSorted());
  const [, saved = ''] = /^for volume in (.*); do$/m.exec(page) ?? [];
  const own = volumes.filter((name) => !name.endsWith('-certificate') && name !== 'backup-data');
  expect(saved.split(' ').toSorted()).toEqual(own.toSorted());
});

it('the documentation names the subnet as the files do', () => {
  const text = JSON.stringify(read('compose.yaml'));
  for (const [, address = ''] of page.matchAll(/\b(172\.\d+\.\d+\.\d+(?:\/\d+)?)/g)) expect(text).toContain(address);
});
