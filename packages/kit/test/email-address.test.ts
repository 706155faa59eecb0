import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_SENDERS, SENDERS } from '../../../test/alerts/fake-senders.ts';
import { isEmailAddress, readSender, formatSender } from '../addresses.ts';
import { runs } from '../../../test/support/runs.ts';

describe('a sender', () => {
  it.each(SENDERS)('%s is read, and means the same in the form that services take', (text) => {
    const sender = readSender(text);
    expect(sender).not.toHaveProperty('fault');
    if ('fault' in sender) return;
    expect(isEmailAddress(sender.address)).toBe(true);
    expect(readSender(formatSender(sender))).toEqual(sender);
  });

  it.each(NO_SENDERS)('%j is none, and it is said why', (text) => {
    expect(readSender(text)).toEqual({ fault: expect.stringMatching(/^(it|the name|the part) .{5,}$/) });
  });

  it('has its name quoted only where punctuation would mean something else', () => {
    const shown = (name: string): string => formatSender({ name, address: 'a@b.org' });
    expect(['', 'Duty Desk', 'Öl. Nord', 'Duty, "Desk"'].map(shown)).toEqual([
      'a@b.org',
      'Duty Desk <a@b.org>',
      'Öl. Nord <a@b.org>',
      String.raw`"Duty, \"Desk\"" <a@b.org>`,
    ]);
  });

  it('of any text is either refused or survives being written and read again', () => {
    const part = fc.constantFrom('a@b.org', '<', '>', '"', '\\', ',', ' ', 'Duty', 'ü', '@', '\n');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const sender = readSender(parts.join(''));
        if ('fault' in sender) return;
        expect(formatSender(sender)).not.toMatch(/\p{Cc}/u);
        const again = readSender(formatSender(sender));
        expect(again).toEqual(sender);
      }),
      { numRuns: runs(2000) },
    );
  });
});
