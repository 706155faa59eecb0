// What the settings make of the sender.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../shared/config/load-settings.ts';
import { readSender } from '../../shared/domain/email-address.ts';
import { senderOf } from '../../shared/runtime/outlets.ts';

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
      { numRuns: 1000 },
    );
  });
});
