// What leaves the machine in a support bundle: no value of a secret in any form in which programs
// write it, no key, no cookie, no token; and everything else as it was.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SETTING_NAMES, SETTINGS } from '../../../shared/settings/table.ts';
import { cleanerOf, formsOf, isSecret, secretsOf } from '../support-bundle/embedded.ts';

const value = fc.string({
  minLength: 8,
  maxLength: 40,
  unit: fc.constantFrom(...Array.from(String.raw`abcXYZ0189!"#$%&'()*+,-./:;<=>?@[]^_{|}~\ `)),
});
const textOf = (secret: string, text: string): string => cleanerOf([{ name: 'A_SECRET', value: secret }])(text).text;

describe('a known secret', () => {
  it.each([
    ['as it is', (v: string) => `start ${v} end`],
    ['in JSON', (v: string) => JSON.stringify({ p: v })],
    ['in JSON in JSON', (v: string) => JSON.stringify({ p: JSON.stringify({ q: v }) })],
    ['in a URL', (v: string) => `postgres://u:${encodeURIComponent(v)}@h/d`],
    ['in a form', (v: string) => new URLSearchParams({ password: v }).toString()],
    ['in a header of Basic', (v: string) => Buffer.from(`webadmin:${v}`).toString('base64')],
    ['in base64', (v: string) => Buffer.from(v).toString('base64')],
    ['in base64 for URLs', (v: string) => Buffer.from(`x${v}y`).toString('base64url')],
    ['in hexadecimal', (v: string) => Buffer.from(v).toString('hex')],
    ['as Compose shows it', (v: string) => `PASSWORD: ${v.replaceAll('$', '$$$$')}`],
    [
      'in XML',
      (v: string) =>
        `<p a="${v.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')}"/>`,
    ],
  ])('is found %s, whatever characters it has', (_, written) => {
    fc.assert(
      fc.property(value, (secret) => {
        const text = written(secret);
        const cleaned = textOf(secret, text);
        expect(cleaned).toContain('A_SECRET');
        for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('hex')])
          if (!'[removed: A_SECRET]'.includes(form)) expect(cleaned).not.toContain(form);
      }),
      { numRuns: 60 },
    );
  });

  it('is taken out everywhere, and counted', () => {
    const { text, found } = cleanerOf([{ name: 'A', value: 'abcdefgh' }])('1 abcdefgh 2 abcdefgh');
    expect(text).toBe('1 [removed: A] 2 [removed: A]');
    expect([...found]).toEqual([['A', 2]]);
  });

  it('does not leave the rest of a longer one', () => {
    const both = [
      { name: 'SHORT', value: 'abcdef' },
      { name: 'LONG', value: 'abcdef-ghijkl' },
    ];
    expect(cleanerOf(both)('x abcdef-ghijkl y').text).toBe('x [removed: LONG] y');
  });

  it('has its forms once each, none shorter than is searched for', () => {
    expect(formsOf('plain')).toContain('plain');
    expect(new Set(formsOf('plain')).size).toBe(formsOf('plain').length);
    expect(formsOf('ab').every((form) => form.length >= 4)).toBe(true);
  });
});

describe('what nobody has named', () => {
  const PEM = `-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBcanary\n-----END EC PRIVATE KEY-----`;
  it.each([
    ['a private key', `before\n${PEM}\nafter`, 'MHcCAQEEIBcanary'],
    ['a private key in JSON', JSON.stringify({ key: PEM }), 'MHcCAQEEIBcanary'],
    ['a private key that is cut off', PEM.slice(0, 50), 'MHcCAQEEIB'],
    ['a cookie', 'Cookie: __Host-session=abc.def-canary; other=1', 'canary'],
    ['a cookie in JSON', '{"set-cookie":"sid=canary12345; HttpOnly"}', 'canary12345'],
    ['a bearer token', 'authorization: Bearer canary-0123456789', 'canary-0123456789'],
    ['a signed token', 'got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl', 'eyJzdWIiOiJjYW5hcnkifQ'],
    ['a password in a URL', 'at postgres://holdfast:canary-pw@db:5432/holdfast', 'canary-pw'],
    ['a password in an environment', 'POSTGRES_PASSWORD=canary-pw', 'canary-pw'],
    ['a password in YAML', '  SOME_API_KEY: canary-key', 'canary-key'],
    ['a password of XML', '<tls keystorePass="canary-pass"/>', 'canary-pass'],
  ])('%s is taken out', (_, text, secret) => {
    const cleaned = cleanerOf([])(text);
    expect(cleaned.text).not.toContain(secret);
    expect(cleaned.found.size).toBeGreaterThan(0);
    // And once is enough.
    expect(cleanerOf([])(cleaned.text).text).toBe(cleaned.text);
  });

  it('everything else stays as it was', () => {
    const text =
      '{"time":"2026-01-01T00:00:00Z","level":"error","event":"core.failed","error":"no room on /var/lib (password wrong)","port":8443}\n';
    expect(cleanerOf([])(text)).toEqual({ text, found: new Map() });
  });
});

describe('which settings are secret', () => {
  it('those of the table that are, whatever they are called, and unknown ones that sound so', () => {
    for (const name of SETTING_NAMES) expect(isSecret(name, 'x')).toBe(SETTINGS[name].kind.secret);
    expect(isSecret('MY_API_KEY', 'x')).toBe(true);
    expect(isSecret('TZ', 'UTC')).toBe(false);
  });

  it('and the passwords in URLs, as they stand there and as they are meant', () => {
    expect(secretsOf({ SMTP_URL: 'smtp://u:p%40ssw0rd@mail:25' }).map((each) => each.value)).toEqual([
      'smtp://u:p%40ssw0rd@mail:25',
      'p%40ssw0rd',
      'p@ssw0rd',
    ]);
    expect(secretsOf({ A_PROXY: 'http://u:hidden99@p/' })).toEqual([
      { name: 'A_PROXY', value: 'http://u:hidden99@p/' },
      { name: 'A_PROXY', value: 'hidden99' },
    ]);
  });
});

describe('the program that cleans a bundle', () => {
  const home = resolve(import.meta.dirname, '../../..');
  let directory: string;
  let program: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'holdfast-clean-'));
    program = join(directory, 'support-bundle.mjs');
    await build({
      absWorkingDir: home,
      entryPoints: ['scripts/support-bundle.ts'],
      outfile: program,
      bundle: true,
      format: 'esm',
      platform: 'node',
      loader: { '.sql': 'text' },
      define: { HOLDFAST_RELEASE: '"0"', HOLDFAST_THRESHOLDS: '""' },
      banner: {
        js: "import { createRequire as createRequire_ } from 'node:module'; const require = createRequire_(import.meta.url);",
      },
      logLevel: 'error',
    });
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('lets no canary out: of every secret setting a value of its own, in every file and form', () => {
    const canaries = SETTING_NAMES.filter((name) => SETTINGS[name].kind.secret).map(
      (name, index) => [name, `c4n@ry'${index}$"<&>-${name.toLowerCase()}`] as const,
    );
    const raw = join(directory, 'raw');
    mkdirSync(join(raw, 'settings'), { recursive: true });
    mkdirSync(join(raw, 'logs'));
    const quoted = (text: string): string => `"${text.replaceAll(/["$\\]/g, String.raw`\$&`)}"`;
    // As Compose reads it.
    const assigned = ['=', ': ', ' = '];
    writeFileSync(
      join(raw, 'settings/env'),
      `SERVER_ADDRESS=cot.example.org\n${canaries.map(([name, text], index) => `${name}${assigned[index % 3] ?? ''}${quoted(text)}`).join('\n')}\n`,
    );
    writeFileSync(join(raw, 'logs/core.log'), canaries.flatMap(([, text]) => formsOf(text)).join('\n'));
    writeFileSync(
      join(raw, 'config.yaml'),
      canaries.map(([name, text]) => `  ${name}: ${JSON.stringify(text)}`).join('\n'),
    );
    const input = spawnSync('tar', ['-C', raw, '-cf', '-', '.']).stdout;
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--clean'], {
      input,
      env: { PATH: process.env['PATH'] ?? '' },
    });
    expect([status, stderr.toString()]).toEqual([0, '']);
    const out = join(directory, 'out');
    mkdirSync(out);
    spawnSync('tar', ['-C', out, '-xzf', '-'], { input: stdout });
    const files = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((name) =>
      statSync(join(out, name)).isFile(),
    );
    expect(files.toSorted()).toEqual(['CLEANED.txt', 'config.yaml', 'logs/core.log', 'settings/env']);
    const all = files.map((name) => readFileSync(join(out, name), 'utf8')).join('\n');
    for (const [, text] of canaries) for (const form of formsOf(text)) expect(all).not.toContain(form);
    expect(all).not.toMatch(/c4n/i);
    expect(readFileSync(join(out, 'settings/env'), 'utf8')).toContain(
      'SERVER_ADDRESS=cot.example.org\nCORE_DB_PASSWORD=***',
    );
    for (const [name] of canaries)
      expect(readFileSync(join(out, 'CLEANED.txt'), 'utf8')).toContain(`${name}: removed from`);
  });
});
