import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, formatUtc } from '@holdfast/kit/format';
import { asciiLine, maskAddresses, maskRecipient, oneLine, shortened } from '@holdfast/kit/text';
import { alertMessage, type AlertReport, testMessage } from '../../shared/alerts/message.ts';
import type { Alert, Message } from '../../shared/alerts/port.ts';
import { anyCharacter, runs } from '../support/runs.ts';

const PLACE = { name: 'cot.example.org', url: 'https://monitor.cot.example.org/' };
const NOW = new Date('2026-01-02T03:04:10Z');
const LATE = new Date('2026-01-02T03:20:00Z');
const ALERT: AlertReport = {
  id: 'a-1',
  module: 'disk',
  level: 'critical',
  message: '/: 95 % full, 1.2 GB free; critical from 90 % (and 1 more).',
  details: ['/: 95 % full, 1.2 GB free; critical from 90 %.', '/data: 91 % of its inodes used; critical from 90 %.'],
  since: '2026-01-02T00:59:05.000Z',
  raised_at: '2026-01-02T03:04:05.000Z',
};
const REMEDY = ['Look for what grew with du -xh / | sort -h | tail.', 'Delete it, or make the volume larger.'];

function write(change: Partial<AlertReport> = {}, now = NOW): Message {
  return alertMessage({ alert: { ...ALERT, ...change }, place: PLACE, remedy: REMEDY, now });
}

/** The tags of a page, in order. */
const tagsOf = (html: string): string[] => html.match(/<[^>]*>/g) ?? [];

describe('the message of an alert', () => {
  it('says in its subject which module is at which level, and where', () => {
    expect(write()).toMatchObject({ id: 'a-1', subject: '[Holdfast] disk is critical on cot.example.org' });
  });

  it('takes the alert of the port as it is', () => {
    const stored: Alert = {
      ...ALERT,
      details: [...ALERT.details],
      remedies: [],
      state: 'pending',
      reason: 'somebody@example.org: try again later',
      sent_at: null,
      attempts: 0,
      next_attempt_at: null,
      deliveries: [],
    };
    const message = alertMessage({ alert: stored, place: PLACE, remedy: REMEDY, now: NOW });
    expect(message).toEqual(write());
  });

  it('says what, since when, every finding, what to do, where to look, and why one gets it', () => {
    expect(write().text).toBe(`disk is critical on cot.example.org.

Problem: /: 95 % full, 1.2 GB free; critical from 90 % (and 1 more).
Since: 2026-01-02 00:59:05 UTC, 2 hours 5 minutes before this alert was raised

Findings:
- /: 95 % full, 1.2 GB free; critical from 90 %.
- /data: 91 % of its inodes used; critical from 90 %.

Next steps:
- Look for what grew with du -xh / | sort -h | tail.
- Delete it, or make the volume larger.

Details: https://monitor.cot.example.org/health/disk

You get this because your address is in ALERT_EMAIL_TO and critical reaches the level set by MON_DISK_ALERT_MIN_LEVEL.
`);
  });

  it('says the same in HTML, with nothing from outside', () => {
    const { html } = write();
    for (const piece of [
      'disk is critical on cot.example.org',
      ALERT.message,
      ...ALERT.details,
      ...REMEDY,
      '2 hours 5 minutes before',
      'MON_DISK_ALERT_MIN_LEVEL',
    ])
      expect(html).toContain(piece);
    expect(html).not.toMatch(/<(img|script|link|style|iframe|form)|src=|url\(|@import/i);
    expect([...html.matchAll(/href="([^"]*)"/g)].map((match) => match[1])).toEqual([
      'https://monitor.cot.example.org/health/disk',
    ]);
  });

  it('fits an SMS, the most important first', () => {
    expect(write().brief).toBe(
      'Holdfast: disk is CRITICAL on cot.example.org. /: 95 % full, 1.2 GB free; critical from 90 % (and 1 more). Since 2026-01-02 00:59:05 UTC.',
    );
  });

  it('that is late tells what was, when it was raised, and where to see how it is now', () => {
    const late = write({}, LATE);
    const sentence =
      'This alert was raised at 2026-01-02 03:04:05 UTC but could not be sent until now. The state may have changed. Check the link below.';
    expect(late.subject).toBe('[Holdfast] disk was critical on cot.example.org');
    expect(late.text).toMatch(/^disk was critical on cot\.example\.org\.\n/);
    expect(late.text).toContain(sentence);
    expect(late.text).toContain('Current state: https://monitor.cot.example.org/health/disk');
    expect(late.html).toContain(sentence);
    expect(late.brief).toMatch(/^Holdfast: disk was CRITICAL on .*, raised 2026-01-02 03:04:05 UTC, sent late\.$/);
    expect(write().text).not.toContain('could not be sent');
  });

  it('has two texts and no third, whenever and after whatever it is sent', () => {
    const sent = [-1, 0, 5, 59.999, 60, 61, 3600, 3 * 86_400].map((seconds) => {
      const stored = { ...ALERT, reason: `vain attempt, ${seconds} s` };
      const now = new Date(Date.parse(ALERT.raised_at) + seconds * 1000);
      return JSON.stringify(alertMessage({ alert: stored, place: PLACE, remedy: REMEDY, now }));
    });
    const [fresh, late] = [JSON.stringify(write()), JSON.stringify(write({}, LATE))];
    expect(sent).toEqual([fresh, fresh, fresh, fresh, late, late, late, late]);
    expect(late).not.toBe(fresh);
  });

  it('says nothing of a duration when it began at the moment at which it was raised', () => {
    for (const since of [ALERT.raised_at, '2026-01-02T03:04:04.600Z', '2026-01-02T04:00:00.000Z', 'unknown'])
      expect(write({ since }).text).not.toContain('before this alert was raised');
    expect(write({ since: '2026-01-02T03:04:00.000Z' }).text).toContain(
      'Since: 2026-01-02 03:04:00 UTC, less than a minute before this alert was raised\n',
    );
  });

  it('keeps header injection, HTML and bidi controls of a module harmless', () => {
    const evil = 'a\r\nBcc: x@evil.org\r\n\r\n<script>alert(1)</script> "\' &amp; \u202Egnp.exe \u0000\u2028b';
    const message = write({ message: evil, details: [evil], module: `disk\r\nBcc: x@evil.org` });
    expect(message.subject).toBe('[Holdfast] disk Bcc: x@evil.org is critical on cot.example.org');
    expect(message.html).toContain('&lt;script&gt;alert(1)&lt;/script&gt; &quot;&#39; &amp;amp; ?gnp.exe ? b');
    expect(message.text.split('\n')).toHaveLength(write().text.split('\n').length - 1);
    expect(message.text).not.toMatch(/[^\P{Cc}\n]|[\u202E\u2028]/u);
  });

  it('shortens what is longer than anybody reads', () => {
    const long = 'x'.repeat(10_000);
    const message = write({ message: long, details: Array.from({ length: 50 }, () => long) });
    expect([message.text.length < 20_000, message.html.length < 20_000, message.brief.length]).toEqual([
      true,
      true,
      300,
    ]);
    expect(message.brief).toMatch(/xxx\.\.\. Since /);
  });
});

const anyText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 2000 }),
  fc
    .array(
      fc.constantFrom(
        '<b>',
        '&lt;',
        '\r\n',
        '"',
        "'",
        '\u202E',
        '\uD800',
        'ü',
        'ﷺ',
        '`',
        'Bcc: ',
        '🔥',
        '\u0000',
        ']]>',
      ),
    )
    .map((parts) => parts.join('')),
);
const anyAlert = fc.record({
  id: fc.uuid(),
  module: fc.stringMatching(/^[a-z]{1,20}$/),
  level: fc.constantFrom('note', 'warning', 'critical'),
  message: anyText,
  details: fc.array(anyText, { maxLength: 30 }),
  since: fc.oneof(fc.constant(ALERT.since), anyText),
  raised_at: fc.constantFrom(ALERT.raised_at, '2025-12-31T23:59:59.999Z'),
});
const anyPlace = fc.record({ name: anyText, url: fc.constant(PLACE.url) });
const anyRemedy = fc.array(anyText, { maxLength: 4 });

describe('whatever a module says', () => {
  const always = (holds: (message: Message, alert: AlertReport) => void): void =>
    fc.assert(
      fc.property(anyAlert, anyPlace, anyRemedy, (alert, place, remedy) => {
        holds(alertMessage({ alert, place, remedy, now: NOW }), alert);
      }),
      { numRuns: runs(300) },
    );

  it('the subject is one bounded ASCII line with module and level', () =>
    always(({ subject }, { module, level }) => {
      expect(subject).toMatch(/^[\x20-\x7e]{1,180}$/);
      expect(subject).toMatch(new RegExp(`^\\[Holdfast\\] ${module} (is|was) ${level} on `));
    }));

  it('the SMS is one line of at most 300 printable ASCII characters', () =>
    always(({ brief }, { module, level }) => {
      expect(brief).toMatch(/^[\x20-\x7e]{1,300}$/);
      expect(brief).toMatch(new RegExp(`${module} (is|was) ${level.toUpperCase()} on `));
    }));

  it('no < and no & of it reaches the HTML', () =>
    always(({ html }) => {
      const known = new Set(tagsOf(write().html).map((tag) => tag.replaceAll(/disk|#[0-9a-f]{6}/g, '')));
      const foreign = tagsOf(html).filter((tag) => {
        return !tag.startsWith('<a href="https://monitor.') && !known.has(tag.replaceAll(/#[0-9a-f]{6}/g, ''));
      });
      expect(foreign).toEqual([]);
      expect(html.replaceAll(/&(amp|lt|gt|quot|#39);/g, '')).not.toContain('&');
    }));

  it('neither text nor HTML holds control or bidi characters, and both are bounded', () =>
    always(({ text, html }) => {
      expect(`${text}${html}`).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
      expect(`${text}${html}`.isWellFormed()).toBe(true);
      expect(text.length).toBeLessThan(20_000);
    }));
});

describe('a test message', () => {
  it('says that it is one', () => {
    const message = testMessage(PLACE, 'email', 't-1');
    expect(message).toMatchObject({ id: 't-1', subject: '[Holdfast] Test message from cot.example.org' });
    expect(message.text).toContain('Alerts by email work. This is a test');
    expect(message.text).toContain('ALERT_EMAIL_TO');
    expect(testMessage(PLACE, 'sms', 't-2').brief).toMatch(
      /^\[Holdfast\] Test message from cot\.example\.org\. .{0,200}$/,
    );
  });
});

describe('plain text', () => {
  it.each([
    ['Grüße – „Ölfeld“ 50 €', 'Grusse - "Olfeld" 50 EUR'],
    ['naïve café…', 'naive cafe...'],
    ['Łódź → Ærø', 'Lodz -> AEro'],
    ['日本', '??'],
    ['a\u202Eb\u0000c', 'a?b?c'],
    ['🔥', '?'],
  ])('%s is %s in ASCII', (text, plain) => expect(asciiLine(text)).toBe(plain));

  it('is cut between characters, and told', () => {
    expect(shortened('abcdef', 5)).toBe('ab...');
    expect(shortened('a🔥bcdef', 5)).toBe('a...');
    expect(oneLine(' a\r\n\tb\u0085c ')).toBe('a b c');
  });
});

describe('times and durations', () => {
  it.each([
    [-5, 'less than a minute'],
    [59_999, 'less than a minute'],
    [60_000, '1 minute'],
    [3_600_000, '1 hour'],
    [7_500_000, '2 hours 5 minutes'],
    [86_400_000 * 3 + 60_000, '3 days'],
    [86_400_000 + 3_600_000, '1 day 1 hour'],
    [Number.NaN, 'less than a minute'],
  ])('%d ms are %s', (ms, words) => expect(formatDuration(ms)).toBe(words));

  it('are told in UTC', () => {
    expect(formatUtc('2026-01-02T03:04:05.678+02:00')).toBe('2026-01-02 01:04:05 UTC');
    expect(formatUtc('unknown')).toBe('unknown');
  });
});

describe('addresses of people', () => {
  it.each([
    ['duty@example.org', 'd***@example.org'],
    ['d@example.org', 'd***@example.org'],
    ['+15551234567', '+1555***67'],
    ['+1234567', '+***67'],
    ['+491511234567', '+4915***67'],
  ])('%s is shown as %s', (address, masked) => expect(maskRecipient(address)).toBe(masked));

  it.each([
    ['550 <Duty@Example.org>: no such user', '550 <d***@example.org>: no such user'],
    ['to=duty%40example.org failed', 'to=d***@example.org failed'],
    ["'To' number +1 (555) 123-4567 is no phone", "'To' number +1555***67 is no phone"],
    ['recipient 15551234567 blocked', 'recipient +1555***67 blocked'],
    ['others: chief@example.com, +4915112345678', 'others: c***@example.com, +4915***78'],
    ['250 2.0.0 Ok: queued as 4F2A1', '250 2.0.0 Ok: queued as 4F2A1'],
    ['250 queued as <20261121@mx>', '250 queued as <20261121@mx>'],
    ['<on-call@mx>: unknown, <20261121@mx>', '<o***@mx>: unknown, <20261121@mx>'],
    ['id 9915551234567 and 155512345671', 'id 9915551234567 and 155512345671'],
    ['number 0015551234567, %2B15551234567', 'number +1555***67, +1555***67'],
  ])('are masked in "%s"', (text, masked) =>
    expect(maskAddresses(text, ['duty@example.org', 'on-call@mx', '+15551234567'])).toBe(masked),
  );

  it('never stand in a masked text, whatever surrounds them', () => {
    fc.assert(
      fc.property(fc.emailAddress(), fc.string(), fc.string(), (address, before, after) => {
        if (address.indexOf('@') > 1)
          expect(maskAddresses(`${before}${address}${after}`, [address])).not.toContain(address);
      }),
    );
  });
});
