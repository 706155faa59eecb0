// One alert: how bad, of what, when, and what became of it; unfolded what was found, what helps and who was told.

import { counted } from '@holdfast/kit/format';
import { capitalised } from '@holdfast/kit/text';
import type { Alert } from '../../../shared/alerts/port.ts';
import type { Clock } from '../../pages/clock.ts';
import { Facts } from '../../pages/parts/card.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { When } from '../../pages/parts/time.tsx';
import { moduleWords } from '../health/words.ts';
import { ALERT_WORDS, CHANNEL_NAMES } from './words.ts';

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
        <span>{reason ?? toldInWords(alert)}</span>
      </p>
      <More alert={alert} clock={clock} />
    </li>
  );
}

function toldInWords({ deliveries }: Alert): string {
  const told = deliveries.filter(({ accepted }) => accepted).length;
  return deliveries.length === 0 ? '' : `${told} of ${counted(deliveries.length, 'recipient')}`;
}

function More({ alert, clock }: { alert: Alert; clock: Clock }) {
  const { id, details, remedies, deliveries, since, sent_at: sentAt, next_attempt_at: nextAt, attempts } = alert;
  return (
    <details id={`alert-${id}`}>
      <summary>What was found, and who was told</summary>
      <List title="Found" lines={details} />
      <List title="What helps" lines={remedies} />
      <Facts
        of={{
          'Not well since': <When at={since} clock={clock} />,
          'Reached everybody': <When at={sentAt} clock={clock} never="not yet" />,
          'Tried again': nextAt === null ? undefined : <When at={nextAt} clock={clock} relative />,
          Attempts: String(attempts),
        }}
      />
      {deliveries.length === 0 ? null : (
        <ul class="deliveries">
          {deliveries.map(({ channel, recipient, accepted, detail, at }) => (
            <li>
              <StatusBadge status={accepted ? 'ok' : 'critical'}>{accepted ? 'Taken' : 'Refused'}</StatusBadge>{' '}
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
