import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../shared/settings/load.ts';
import { describeProblem } from '../../shared/settings/setting.ts';

function load(values: Record<string, string>) {
  return loadSettings([{ source: 'environment', values }], 'embedded').problems;
}

const problemsOf = (values: Record<string, string>): string[] => load(values).map(({ name }) => name);

const TO = { ALERT_EMAIL_TO: 'duty@example.org' };
const SMTP = { SMTP_URL: 'smtp://mail.example.org' };
const RESEND = { RESEND_API_KEY: 're_0123456789' };
const FROM = { ALERT_EMAIL_FROM: 'holdfast@example.org' };
const SMS = { ALERT_SMS_TO: '+15551234567' };
const TWILIO = { TWILIO_ACCOUNT_SID: 'AC00000000', TWILIO_AUTH_TOKEN: 'from-twilio', TWILIO_FROM: '+15557654321' };

describe('settings of alerts by email', () => {
  it.each([
    ['nothing', {}, []],
    ['a server alone', SMTP, []],
    ['Resend alone', RESEND, []],
    ['a sender alone', FROM, []],
    ['recipients without a way', TO, ['ALERT_EMAIL_TO']],
    ['recipients with a sender only', { ...TO, ...FROM }, ['ALERT_EMAIL_TO']],
    ['recipients and a server', { ...TO, ...SMTP }, []],
    ['recipients and Resend without a sender', { ...TO, ...RESEND }, ['ALERT_EMAIL_FROM']],
    [
      'recipients, a server and Resend, which wins, without a sender',
      { ...TO, ...SMTP, ...RESEND },
      ['ALERT_EMAIL_FROM'],
    ],
    ['recipients, Resend and a sender', { ...TO, ...RESEND, ...FROM }, []],
    ['recipients and a bad server', { ...TO, SMTP_URL: 'mail' }, ['SMTP_URL']],
    ['a password without its user', { ...TO, SMTP_URL: 'smtp://:secret@mail.example.org' }, ['SMTP_URL']],
    ['recipients, Resend and a bad sender', { ...TO, ...RESEND, ALERT_EMAIL_FROM: 'me' }, ['ALERT_EMAIL_FROM']],
    ['bad recipients', { ALERT_EMAIL_TO: 'me' }, ['ALERT_EMAIL_TO']],
  ])('%s', (_, values, names) => expect(problemsOf(values)).toEqual(names));
});

describe('settings of alerts by SMS', () => {
  it.each([
    ['recipients without a provider', SMS, ['SMS_PROVIDER']],
    ['a provider without recipients', { SMS_PROVIDER: 'twilio' }, []],
    ['Twilio with all it needs', { ...SMS, SMS_PROVIDER: 'twilio', ...TWILIO }, []],
    ['Twilio with nothing', { ...SMS, SMS_PROVIDER: 'twilio' }, Object.keys(TWILIO)],
    [
      'Twilio without its token',
      { ...SMS, SMS_PROVIDER: 'twilio', ...TWILIO, TWILIO_AUTH_TOKEN: '' },
      ['TWILIO_AUTH_TOKEN'],
    ],
    ['Twilio with a bad number', { ...SMS, SMS_PROVIDER: 'twilio', ...TWILIO, TWILIO_FROM: '?' }, ['TWILIO_FROM']],
    ['Brevo with its key', { ...SMS, SMS_PROVIDER: 'brevo', BREVO_API_KEY: 'from-brevo' }, []],
    ['Brevo with the keys of Twilio', { ...SMS, SMS_PROVIDER: 'brevo', ...TWILIO }, ['BREVO_API_KEY']],
    ['a bad provider', { ...SMS, SMS_PROVIDER: 'pigeon' }, ['SMS_PROVIDER']],
  ])('%s', (_, values, names) => expect(problemsOf(values)).toEqual(names));
});

describe('the address of a service that is given a key', () => {
  it('loses the slash at its end', () => {
    const values = { RESEND_URL: 'https://api.example.org/', TWILIO_URL: 'https://api.example.org/eu//' };
    const { settings } = loadSettings([{ source: 'environment', values }], 'embedded');
    expect([settings.RESEND_URL, settings.TWILIO_URL, settings.BREVO_URL]).toEqual([
      'https://api.example.org',
      'https://api.example.org/eu',
      'https://api.brevo.com',
    ]);
  });

  it('is refused when the key would go over the network unencrypted, with the reason', () => {
    expect(load({ BREVO_URL: 'http://api.example.org' }).map(describeProblem)).toEqual([
      expect.stringMatching(
        /would send the key over the network unencrypted.*\n +Remedy: set for example BREVO_URL=https/,
      ),
    ]);
    expect(load({ BREVO_URL: 'x' })[0]?.message).toMatch(/fragment$/);
  });
});

describe('a problem of alerts', () => {
  it('names variable, value and remedy, and no secret', () => {
    expect(load(TO).map(describeProblem)).toEqual([
      expect.stringMatching(/^ALERT_EMAIL_TO=duty@.*\n +Remedy: set SMTP_URL/),
    ]);
    const [missing = ''] = load({ ...SMS, SMS_PROVIDER: 'brevo' }).map(describeProblem);
    expect(missing).toMatch(
      /^BREVO_API_KEY: must be set, because .* SMS_PROVIDER=brevo are\n +Remedy: set BREVO_API_KEY/,
    );
    expect(
      load({ ...TO, ...RESEND })
        .map(describeProblem)
        .join(),
    ).not.toContain('re_0123456789');
  });
});
