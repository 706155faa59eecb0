import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tuningDifferences } from '../../../shared/settings/tuning.ts';
import { AS_WANTED } from '../../../test/health/fake-monitored.ts';
import {
  coversLoopback,
  isHostName,
  isIpAddress,
  isIpv6,
  isUnicastAddress,
  normalAddress,
  urlHost,
} from '../addresses.ts';
import { parseDatabaseSize } from '../format.ts';
import { readQuartz } from '../cron/quartz.ts';
import { Secret } from '../secret.ts';
import { nearestName } from '../text.ts';

describe('a secret', () => {
  it('prints, serialises and inspects as ***, and reveals its text only when asked', () => {
    const secret = new Secret('hunter2hunter2');
    expect(
      [String(secret), JSON.stringify({ secret }), inspect(secret), inspect({ deep: [secret] })].join(' '),
    ).not.toContain('hunter2');
    expect(String(secret)).toBe('***');
    expect(secret.reveal()).toBe('hunter2hunter2');
  });
});

describe('a PostgreSQL size', () => {
  it.each([
    ['256MB', 256 * 1024 ** 2],
    ['1GB', 1024 ** 3],
    ['65536', 65536 * 1024],
    ['64 kB', 65536],
  ])('%s is %d bytes', (text, bytes) => expect(parseDatabaseSize(text)).toBe(bytes));

  it.each(['256mb', '1.5GB', '-1MB', 'MB', '', '256 M'])('%s is none', (text) =>
    expect(parseDatabaseSize(text)).toBeUndefined(),
  );
});

describe('host names and addresses', () => {
  it.each([
    'cot.example.org',
    'a',
    'x-1.example',
    '127.0.0.1',
    '::1',
    'fe80::1',
    '2001:db8::8:800:200c:417a',
    '::ffff:10.0.0.1',
  ])('accepts %s', (text) => expect(isHostName(text) || isIpAddress(text)).toBe(true));

  it.each([
    '-a.example',
    'a..b',
    'http://x',
    'a:80',
    '256.1.1.1',
    '1.2.3',
    ':::',
    '1::2::3',
    '12345::',
    '',
    'a b',
    `${'x'.repeat(64)}.example`,
  ])('refuses "%s"', (text) => expect(isHostName(text) || isIpAddress(text)).toBe(false));

  it('accepts every IPv6 address that a URL accepts in brackets, and no other text of its letters', () => {
    const letters = fc.string({ unit: fc.constantFrom(...Array.from('0123456789abcdef:')), maxLength: 39 });
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), letters), (text) => isIpv6(text) === URL.canParse(`http://[${text}]/`)),
      { numRuns: 2000 },
    );
  });

  it('puts IPv6 addresses in brackets, and knows which addresses take loopback as well', () => {
    expect([urlHost('::1'), urlHost('10.0.0.1')]).toEqual(['[::1]', '10.0.0.1']);
    expect(['0.0.0.0', '::', '127.0.0.1', '127.0.0.2', '10.0.0.1'].filter(coversLoopback)).toEqual([
      '0.0.0.0',
      '::',
      '127.0.0.1',
    ]);
  });
});

describe('the nearest name', () => {
  const known = ['COT_RETENTION_DAYS', 'GEOCHAT_RETENTION_DAYS', 'SMTP_URL'];
  it('finds what a typing error meant', () =>
    expect(nearestName('COT_RETENTON_DAY', known)).toBe('COT_RETENTION_DAYS'));
  it('says nothing when nothing is near', () => expect(nearestName('HOME', known)).toBeUndefined());
});

describe('a Quartz schedule', () => {
  it.each([
    ['0 0 3 ? * FRI-MON', '0 0 3 ? * 1,2,6,7'],
    ['0 0 22-4/2 * * ?', '0 0 0,2,4,22 * * ?'],
    ['0 5/20 * * JAN ?', '0 5-59/20 * * 1 ?'],
    ['0 0 3 ? * l', '0 0 3 ? * 7'],
    ['0 0 3 ? * FRIL', '0 0 3 ? * 6L'],
    ['0 0 3 ? DEC-FEB TUE#2 2027-2030', '0 0 3 ? 1,2,12 3#2 2027-2030'],
  ])('%s reads as %s', (expression, pattern) => expect(readQuartz(expression)).toEqual({ pattern }));
});

describe('one spelling per address', () => {
  it.each([
    ['::0', '::'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:127.0.0.1', undefined],
    ['localhost', undefined],
  ])('%s is %s', (text, normal) => expect(normalAddress(text)).toBe(normal));
});

describe('an address of a machine of its own', () => {
  it.each(['223.255.255.254', '220.0.0.1', '10.0.0.1', '0.0.0.0', '::', '2001:db8::1', 'fd00::2'])(
    '%s can be one',
    (address) => expect(isUnicastAddress(address)).toBe(true),
  );
  it.each(['224.0.0.1', '239.1.1.1', '255.255.255.255', 'ff02::1', 'fe80::1'])('%s cannot', (address) =>
    expect(isUnicastAddress(address)).toBe(false),
  );
});

describe('tuningDifferences', () => {
  it('finds each setting that differs, and compares sizes by value', () => {
    expect(
      tuningDifferences(AS_WANTED, { scaleFactor: 0.05, costLimit: 1000, maintenanceWorkMem: '262144kB' }),
    ).toEqual([]);
    const differences = tuningDifferences(AS_WANTED, { scaleFactor: 0.2, costLimit: 200, maintenanceWorkMem: '64MB' });
    expect(differences).toEqual([
      { name: 'autovacuum_vacuum_scale_factor', is: '0.05', wanted: '0.2' },
      { name: 'autovacuum_vacuum_cost_limit', is: '1000', wanted: '200' },
      { name: 'maintenance_work_mem', is: '256MB', wanted: '64MB' },
    ]);
  });

  it('takes a setting that the server does not show for one that differs', () =>
    expect(tuningDifferences({}, { scaleFactor: 0.05, costLimit: 1000, maintenanceWorkMem: '256MB' })).toHaveLength(6));
});
