// Shows one alert with its level, module, time and delivery; details, next steps and recipients
// unfold.

import { counted } from '@holdfast/kit/format';
import { capitalised } from '@holdfast/kit/text';
import type { Alert, AlertProgress, Channel } from '../../../shared/alerts/port.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { Facts } from '../../pages/parts/card.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { type Clock, When } from '../../pages/parts/time.tsx';
import { moduleWords } from '../health/module-texts.tsx';

/** The delivery states of an alert in words. */
export const ALERT_WORDS: Record<AlertProgress, StateWords> = {
  sent: { status: 'ok', word: 'Delivered', means: 'Every recipient has it.' },
  pending: {
    status: 'note',
    word: 'Pending',
    means: 'Not every recipient has it yet. Delivery is retried with growing pauses.',
  },
  suppressed: {
    status: 'note',
    word: 'Muted',
    means: 'Not sent on purpose: a similar alert came shortly before, or there are no recipients.',
  },
  failed: {
    status: 'critical',
    word: 'Failed',
    means: 'Delivery stopped: not every recipient has it. Send a test alert to find the cause.',
  },
};

export const CHANNEL_NAMES: Record<Channel, string> = { email: 'Email', sms: 'SMS' };

export interface StateWords {
  status: Status;
  word: string;
  means: string;
}

export function AlertRecord({ alert, clock }: { alert: Alert; clock: Clock }) {
  const { level, module, message, raised_at: raisedAt, reason } = alert;
  const { status, word } = ALERT_WORDS[alert.state];
  return (
    <li class={`record ${level}`}>
      <p class="recordhead">
        <StatusBadge status={level} />
        <a href={`/health/${encodeURIComponent(module)}`}>{moduleWords(module).title}</a>
        <When at={raisedAt} clock={clock} relative />
      </p>
      <p class="said">{capitalised(message)}</p>
      <p class="recordstate">
        <StatusBadge status={status}>{word}</StatusBadge>
        <span>{reason ?? formatReported(alert)}</span>
      </p>
      <More alert={alert} clock={clock} />
    </li>
  );
}

function formatReported({ deliveries }: Alert): string {
  const reported = deliveries.filter(({ accepted }) => accepted).length;
  return deliveries.length === 0 ? '' : `${reported} of ${counted(deliveries.length, 'recipient')}`;
}

function More({ alert, clock }: { alert: Alert; clock: Clock }) {
  const { id, details, remedies, deliveries, since, sent_at: sentAt, next_attempt_at: nextAt, attempts } = alert;
  return (
    <details id={`alert-${id}`}>
      <summary>Details and recipients</summary>
      <List title="Findings" lines={details} />
      <List title="Next steps" lines={remedies} />
      <Facts
        of={{
          'Problem since': <When at={since} clock={clock} />,
          Delivered: <When at={sentAt} clock={clock} never="not yet" />,
          'Next attempt': nextAt === null ? undefined : <When at={nextAt} clock={clock} relative />,
          Attempts: String(attempts),
        }}
      />
      {deliveries.length === 0 ? null : (
        <ul class="deliveries">
          {deliveries.map(({ channel, recipient, accepted, detail, at }) => (
            <li>
              <StatusBadge status={accepted ? 'ok' : 'critical'}>{accepted ? 'Accepted' : 'Rejected'}</StatusBadge>{' '}
              {CHANNEL_NAMES[channel]} to {recipient}, <When at={at} clock={clock} />: {detail}
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}

function List({ title, lines }: { title: string; lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <>
      <p class="fine">{title}</p>
      <ul>
        {lines.map((line) => (
          <li>{capitalised(line)}</li>
        ))}
      </ul>
    </>
  );
}
