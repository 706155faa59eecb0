// Checks that alerts reach their recipients, and that the heartbeat to an external monitor works.

import { messageOf } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import type { Alerts, AlertSummary } from '../../alerts/port.ts';
import type { Finding } from '../evaluate.ts';
import { healthModule } from '../module.ts';

/** Every figure is null while the database is unavailable. */
type MaybeSummary = { [K in keyof AlertSummary]: AlertSummary[K] | null };

interface AlertsData extends MaybeSummary {
  /** Why the figures are missing; null if they are known. */
  unknown_because: string | null;
  /** Why a restart without the database would lose alerts; null if it would not. */
  journal_error: string | null;
  email_recipients: number;
  sms_recipients: number;
  /** Null when no heartbeat is set up. */
  heartbeat_failures_in_row: number | null;
  heartbeat_last_ok_at: string | null;
  heartbeat_error: string | null;
}

/** Shorter delays are not reported: a mail server may be restarting. */
const LONG_PENDING_SECONDS = 120;
const HEARTBEATS_MISSED = 3;

export const alerts = healthModule<AlertsData>({
  name: 'alerts',
  isLocal: true,
  remedy: [
    'Send a test alert: curl -u webadmin -X POST -H "content-type: application/json" -d \'{"channel":"email"}\' http://127.0.0.1:8080/api/ops/alerts/test',
    'See GET /api/alerts for pending alerts and the answers of the mail or SMS service.',
    'Correct ALERT_EMAIL_TO, SMTP_URL and the related settings in .env, then restart. Pending alerts are sent then.',
  ],

  async read({ alerts: store, recipients, heartbeat }) {
    const [summary, trouble, beats] = await Promise.all([summaryOf(store), store.trouble(), heartbeat?.state()]);
    const { email = 0, sms = 0 } = recipients;
    return {
      ...summary,
      journal_error: trouble,
      email_recipients: email,
      sms_recipients: sms,
      heartbeat_failures_in_row: beats?.failures_in_row ?? null,
      heartbeat_last_ok_at: beats?.last_ok_at ?? null,
      heartbeat_error: beats?.error ?? null,
    };
  },

  findings(data) {
    const { pending, oldest_pending_seconds: oldest, partly_sent: partly, failed, failed_unreached: unreached } = data;
    const reason = data.pending_reason ?? 'not tried yet';
    const note = (says: string): Finding => ({ kind: 'fact', status: 'note', says });
    const findings: Finding[] = [];
    if (data.unknown_because !== null) findings.push(note(`couldn't read pending alerts: ${data.unknown_because}`));
    if (unreached !== null && unreached > 0)
      findings.push(note(`${counted(unreached, 'alert')} reached no recipient within 3 days: ${data.failed_reason}`));
    else if (failed !== null && failed > 0)
      findings.push(note(`${counted(failed, 'alert')} didn't reach every recipient: ${data.failed_reason}`));
    if (pending !== null && pending > 0 && hasNoRecipients(data))
      findings.push(note(`${counted(pending, 'alert')} pending, but there are no recipients any more`));
    else if (oldest !== null && oldest >= LONG_PENDING_SECONDS)
      findings.push(note(`${counted(pending ?? 0, 'alert')} pending: ${reason}`));
    else if (partly !== null && partly > 0)
      findings.push(note(`${counted(partly, 'alert')} delivered only to some recipients: ${reason}`));
    if (data.journal_error !== null) findings.push(note(`couldn't write the alert journal: ${data.journal_error}`));
    if ((data.heartbeat_failures_in_row ?? 0) >= HEARTBEATS_MISSED) findings.push(note(`${data.heartbeat_error}`));
    return findings;
  },

  well(data) {
    if (hasNoRecipients(data)) return 'No alert recipients: set ALERT_EMAIL_TO or ALERT_SMS_TO.';
    const { email_recipients: email, sms_recipients: sms } = data;
    const who = [email > 0 ? `${email} by email` : '', sms > 0 ? `${sms} by SMS` : ''].filter((part) => part !== '');
    return `Recipients: ${who.join(' and ')}. ${data.pending ? counted(data.pending, 'alert') : 'No alerts'} pending.`;
  },

  trend: { name: 'alerts pending', unit: 'count', figureOf: ({ pending }) => pending },
});

function hasNoRecipients({
  email_recipients: email,
  sms_recipients: sms,
}: Pick<AlertsData, 'email_recipients' | 'sms_recipients'>): boolean {
  return email + sms === 0;
}

const UNKNOWN: MaybeSummary = {
  pending: null,
  oldest_pending_seconds: null,
  partly_sent: null,
  pending_reason: null,
  failed: null,
  failed_unreached: null,
  failed_reason: null,
  last_sent_at: null,
};

/** An unavailable database is reported by the module `database`. */
async function summaryOf(store: Pick<Alerts, 'summary'>): Promise<MaybeSummary & { unknown_because: string | null }> {
  return store.summary().then(
    (summary) => ({ ...summary, unknown_because: null }),
    (error: unknown) => ({ ...UNKNOWN, unknown_because: messageOf(error) }),
  );
}
