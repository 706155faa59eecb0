// Whether alerts reach anybody: what waits to be sent, what was given up, and the sign of life for a monitor elsewhere.

import { counted } from '../domain/amounts.ts';
import type { Finding } from '../domain/evaluate.ts';
import type { AlertSummary } from '../ports/alerts.ts';
import { healthModule } from './module.ts';

interface AlertsData extends AlertSummary {
  email_recipients: number;
  sms_recipients: number;
  /** Null when no heartbeat is set up. */
  heartbeat_failures_in_row: number | null;
  heartbeat_last_ok_at: string | null;
  heartbeat_error: string | null;
}

/** A mail server that restarts is nothing to report. */
const LONG_PENDING_SECONDS = 120;
const HEARTBEATS_MISSED = 3;

export const alerts = healthModule<AlertsData>({
  name: 'alerts',
  remedy: [
    'Send a test: curl -u webadmin -X POST -H "content-type: application/json" -d \'{"channel":"email"}\' http://127.0.0.1:8080/api/ops/alerts/test',
    'GET /api/alerts shows what waits, and what the mail or SMS service answered.',
    'Correct ALERT_EMAIL_TO, SMTP_URL and their companions in .env, then restart; what waits is sent then.',
  ],

  async read({ alerts: book, recipients, heartbeat }) {
    const [summary, beats] = await Promise.all([book.summary(), heartbeat?.state()]);
    const { email = 0, sms = 0 } = recipients;
    return {
      ...summary,
      email_recipients: email,
      sms_recipients: sms,
      heartbeat_failures_in_row: beats?.failures_in_row ?? null,
      heartbeat_last_ok_at: beats?.last_ok_at ?? null,
      heartbeat_error: beats?.error ?? null,
    };
  },

  findings(data) {
    const { pending, oldest_pending_seconds: oldest, pending_reason: reason, failed, failed_reason: failure } = data;
    const note = (says: string): Finding => ({ kind: 'fact', status: 'note', says });
    const findings: Finding[] = [];
    if (failed > 0) findings.push(note(`${counted(failed, 'alert')} could not be sent within three days: ${failure}`));
    if (pending > 0 && nobody(data))
      findings.push(note(`${counted(pending, 'alert')} to be sent, and nobody is set up any more`));
    else if (oldest >= LONG_PENDING_SECONDS)
      findings.push(note(`${counted(pending, 'alert')} still to be sent: ${reason ?? 'not tried yet'}`));
    if ((data.heartbeat_failures_in_row ?? 0) >= HEARTBEATS_MISSED) findings.push(note(`${data.heartbeat_error}`));
    return findings;
  },

  well(data) {
    if (nobody(data)) return 'Nobody is told: neither ALERT_EMAIL_TO nor ALERT_SMS_TO is set.';
    const { email_recipients: email, sms_recipients: sms } = data;
    const who = [email > 0 ? `${email} by e-mail` : '', sms > 0 ? `${sms} by SMS` : ''].filter((part) => part !== '');
    return `Told are ${who.join(' and ')}; ${data.pending === 0 ? 'nothing' : counted(data.pending, 'alert')} to be sent.`;
  },
});

function nobody({
  email_recipients: email,
  sms_recipients: sms,
}: Pick<AlertsData, 'email_recipients' | 'sms_recipients'>): boolean {
  return email + sms === 0;
}
