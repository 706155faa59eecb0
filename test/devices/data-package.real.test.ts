// Info-ZIP opens the packages that phones get.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { dataPackage } from '../../shared/devices/certificates/data-package.ts';

const directory = mkdtempSync(join(tmpdir(), 'holdfast-package-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const unzip = (...args: string[]): string => execFileSync('unzip', args, { cwd: directory, encoding: 'utf8' });

it.each(['atak', 'itak'] as const)('a package for %s is a whole zip to unzip, with the files as they were', (app) => {
  const [trust, client] = [Uint8Array.from({ length: 3000 }, (_, at) => at * 7), Uint8Array.from([0, 255, 0x50, 0x4b])];
  const packed = dataPackage({
    app,
    uid: '0b7f9b2e-3f4c-4f57-9c9e-6a1f0d2a4b11',
    description: 'Rescue 7',
    host: 'cot.example.org',
    streamingPort: 8089,
    trust: { fileName: 'truststore.p12', bytes: trust },
    client: { fileName: 'ada.p12', bytes: client },
  });
  writeFileSync(join(directory, `${app}.zip`), packed);
  expect(unzip('-t', `${app}.zip`)).toContain('No errors detected');
  const listed = unzip('-Z1', `${app}.zip`).trim().split('\n');
  const flat = ['config.pref', 'truststore.p12', 'ada.p12'];
  expect(listed).toEqual(app === 'itak' ? flat : ['MANIFEST/manifest.xml', ...flat.map((name) => `certs/${name}`)]);
  unzip('-q', `${app}.zip`, '-d', `from-${app}`);
  const place = join(directory, `from-${app}`, app === 'itak' ? '' : 'certs');
  expect(readdirSync(place)).toHaveLength(3);
  expect([readFileSync(join(place, 'truststore.p12')), readFileSync(join(place, 'ada.p12'))]).toEqual([
    Buffer.from(trust),
    Buffer.from(client),
  ]);
});
