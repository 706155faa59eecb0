// What the settings make of the sender, and of the addresses of the two faces.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readSender } from '@holdfast/kit/addresses';
import { addressesOf, senderOf } from '../../shared/alerts/transports.ts';
import { loadSettings } from '../../shared/settings/load.ts';
import { runs } from '../support/runs.ts';

const load = (values: Record<string, string>) => loadSettings([{ source: 'environment', values }], 'embedded');
const senderFrom = (values: Record<string, string>): string => senderOf(load(values).settings);

describe('the sender of alerts', () => {
  it.each([
    [{ ALERT_EMAIL_FROM: 'Duty, Desk <a@b.org>', SMTP_URL: 'smtp://c%40d.org:p@h' }, '"Duty, Desk" <a@b.org>'],
    [{ SMTP_URL: 'smtp://c%40d.org:p@h' }, 'c@d.org'],
    [
      { SMTP_URL: 'smtp://c%3Bx%40d.org:p@h', SERVER_ADDRESS: 'cot.example.org' },
      'Holdfast <holdfast@cot.example.org>',
    ],
    [{ SMTP_URL: 'smtp://me:p@h', SERVER_ADDRESS: '192.0.2.1' }, 'Holdfast <holdfast@localhost>'],
    [{}, 'Holdfast <holdfast@localhost>'],
  ])('of %j is %s', (values, sender) => expect(senderFrom(values as Record<string, string>)).toBe(sender));

  it('can be sent from, whatever passes the start', () => {
    const odd = fc.string({ unit: fc.constantFrom('a', '.', '@', ';', ',', '<', '>', '"', ' ', '\n', 'ö', '-') });
    const host = fc.constantFrom('cot.example.org', '::1', '192.0.2.1', `${'a.'.repeat(125)}org`);
    fc.assert(
      fc.property(odd, odd, host, (from, user, SERVER_ADDRESS) => {
        const SMTP_URL = `smtp://${encodeURIComponent(user)}:p@h`;
        const { settings, problems } = load({ ALERT_EMAIL_FROM: from, SMTP_URL, SERVER_ADDRESS });
        if (problems.length === 0) expect(readSender(senderOf(settings))).not.toHaveProperty('fault');
      }),
      { numRuns: runs(1000) },
    );
  });
});

describe('the addresses of console and portal', () => {
  const of = (values: Record<string, string>, listen?: string, mode: 'embedded' | 'light' = 'embedded'): string[] => {
    const { settings } = loadSettings([{ source: 'environment', values }], mode);
    const { console, portal } = addressesOf(settings, listen, mode);
    return [console, portal];
  };
  const SERVER_ADDRESS = 'cot.example.org';

  it('are two ports of this machine in an embedded stack, over TLS where --listen opens them', () => {
    const moved = { API_PORT: '8081', PORTAL_PORT: '3001' };
    expect(of({ SERVER_ADDRESS })).toEqual(['http://127.0.0.1:8080', 'http://127.0.0.1:3000']);
    expect(of({ ...moved }, '192.0.2.7')).toEqual(['https://192.0.2.7:8081', 'https://192.0.2.7:3001']);
    expect(of({ SERVER_ADDRESS }, '0.0.0.0')).toEqual([
      `https://${SERVER_ADDRESS}:8080`,
      `https://${SERVER_ADDRESS}:3000`,
    ]);
  });

  it('are two hosts in subdomain mode, and two ways to one host in direct mode', () => {
    const subdomain = { SERVER_ADDRESS, DEPLOY_MODE: 'subdomain' };
    expect(of(subdomain, undefined, 'light')).toEqual([
      `https://monitor.${SERVER_ADDRESS}`,
      `https://${SERVER_ADDRESS}`,
    ]);
    const direct = { SERVER_ADDRESS: '2001:db8::5', DEPLOY_MODE: 'direct' };
    expect(of(direct, undefined, 'light')).toEqual(['https://[2001:db8::5]/monitor', 'https://[2001:db8::5]/portal']);
  });
});
