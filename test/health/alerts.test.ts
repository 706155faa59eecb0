import { describe, expect, it } from 'vitest';
import type { AlertSummary } from '../../shared/alerts/port.ts';
import { alerts } from '../../shared/health/modules/alerts.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { fakeMonitored, history, type World, world } from './fake-monitored.ts';

/** Status and message with these figures. */
async function judged(summary: Partial<AlertSummary>, change: Partial<World> = {}): Promise<[string, string]> {
  const around = world();
  const monitored = fakeMonitored({ ...around, ...change, alerts: { ...around.alerts, ...summary } });
  const { status, message } = await alerts.measure(monitored, DEFAULT_THRESHOLDS, history());
  return [status, message];
}

describe('alerts', () => {
  it('say who is told', async () => {
    expect(await judged({})).toEqual(['ok', 'Recipients: 2 by email. No alerts pending.']);
    expect(await judged({ pending: 1, oldest_pending_seconds: 119 }, { recipients: { email: 1, sms: 3 } })).toEqual([
      'ok',
      'Recipients: 1 by email and 3 by SMS. 1 alert pending.',
    ]);
    expect(await judged({}, { recipients: {} })).toEqual([
      'ok',
      'No alert recipients: set ALERT_EMAIL_TO or ALERT_SMS_TO.',
    ]);
  });

  it('that wait for long are a note, with the reason', async () => {
    const waiting = {
      pending: 2,
      oldest_pending_seconds: 120,
      pending_reason: 'mail.example.org refused the connection',
    };
    expect(await judged(waiting)).toEqual(['note', '2 alerts pending: mail.example.org refused the connection.']);
    expect((await judged(waiting, { recipients: {} }))[1]).toMatch(/there are no recipients any more/);
  });

  it('that somebody does not have are a note at once', async () => {
    expect(await judged({ pending: 1, partly_sent: 1, pending_reason: '550 no such user' })).toEqual([
      'note',
      '1 alert delivered only to some recipients: 550 no such user.',
    ]);
  });

  it('that cannot be seen are a note without figures', async () => {
    const monitored = fakeMonitored(world());
    monitored.alerts.summary = () => Promise.reject(new Error('Our own database does not answer: ECONNREFUSED'));
    const { status, message, data } = await alerts.measure(monitored, DEFAULT_THRESHOLDS, history());
    expect([status, message]).toEqual([
      'note',
      "couldn't read pending alerts: Our own database does not answer: ECONNREFUSED.",
    ]);
    expect(data).toMatchObject({ pending: null, failed: null, email_recipients: 2 });
  });

  it('that were given up are a note, with the reason', async () => {
    const failed = { failed: 2, failed_reason: '550 no such user' };
    expect(await judged({ ...failed, failed_unreached: 1 })).toEqual([
      'note',
      '1 alert reached no recipient within 3 days: 550 no such user.',
    ]);
    expect(await judged(failed)).toEqual(['note', "2 alerts didn't reach every recipient: 550 no such user."]);
  });

  it('that a restart could forget are a note', async () => {
    expect((await judged({}, { journalError: 'EROFS: read-only file system' }))[1]).toBe(
      "couldn't write the alert journal: EROFS: read-only file system.",
    );
  });

  it('cannot come from a dead host: a heartbeat that fails three times is a note', async () => {
    const heartbeat = { last_ok_at: null, failures_in_row: 2, error: 'HEARTBEAT_URL answered 500' };
    expect((await judged({}, { heartbeat }))[0]).toBe('ok');
    expect(await judged({}, { heartbeat: { ...heartbeat, failures_in_row: 3 } })).toEqual([
      'note',
      'HEARTBEAT_URL answered 500.',
    ]);
  });
});
