// What is kept how long just now, when the next runs are, and what is odd about it.

import { capitalised } from '../../shared/domain/plain-text.ts';
import { RETAINED } from '../../shared/domain/retention.ts';
import type { Measurement } from '../../shared/ports/health-cache.ts';
import type { RetentionState, ShownArchiving } from '../../shared/verbs/retention-state.ts';
import type { Clock } from '../pages/clock.ts';
import { Card, Facts } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { When } from '../pages/parts/time.tsx';
import { scheduleNow } from './retention-editor.tsx';
import { keptInWords, TYPE_WORDS } from './retention-words.ts';

interface NowProps {
  state: RetentionState;
  /** The module retention as it was measured last. */
  health: Measurement | null;
  clock: Clock;
}

export function RetentionNow({ state, health, clock }: NowProps) {
  const [next] = state.next_runs;
  const limited = RETAINED.filter((type) => state.policy[type] !== null);
  return (
    <Card
      title="In force"
      class={health?.status ?? ''}
      aside={health === null || health.status === 'ok' ? undefined : <StatusBadge status={health.status} />}
    >
      {state.problem === null ? null : <Missing>{state.problem}</Missing>}
      {state.unit === null ? null : (
        <p class="figure-sentence">
          {limited.length === 0
            ? 'Everything is kept for ever: nothing is deleted by age.'
            : `Kept: ${limited.map((type) => `${TYPE_WORDS[type].name.toLowerCase()} ${keptInWords(state.policy[type])}`).join(', ')}; everything else for ever.`}
        </p>
      )}
      <Oddities state={state} health={health} />
      <Facts
        of={{
          'Next run':
            next === undefined ? (
              'none: there is no schedule'
            ) : (
              <>
                <When at={next} clock={clock} relative />
                <details class="inline">
                  <summary>The next {state.next_runs.length}</summary>
                  <ul>
                    {state.next_runs.map((at) => (
                      <li>
                        <When at={at} clock={clock} />
                      </li>
                    ))}
                  </ul>
                </details>
              </>
            ),
          Schedule:
            state.cron === '-' ? (
              scheduleNow(state)
            ) : (
              <>
                {scheduleNow(state)} (<code>{state.cron}</code>)
              </>
            ),
          'Counted in': unitInWords(state),
          Missions: archivingInWords(state.mission_archiving),
        }}
      />
      {limited.length === 0 ? null : (
        <p>
          <a class="button" href="/database/retention/preview">
            What the next run deletes
          </a>
        </p>
      )}
    </Card>
  );
}

/** What health complains of and what is odd about the values, each once. */
function Oddities({ state, health }: Pick<NowProps, 'state' | 'health'>) {
  const complaints = health === null || health.status === 'ok' ? [] : health.details;
  const all = [...new Set([...complaints, ...state.notes])];
  if (all.length === 0) return null;
  return (
    <ul class="notice warn">
      {all.map((each) => (
        <li>{inPageTerms(each)}</li>
      ))}
    </ul>
  );
}

function unitInWords({ unit, in_force: from }: RetentionState): string {
  const stands = from === 'files' ? ' (as its files say: the core does not answer)' : '';
  if (unit === null) return 'not known: CORE_RETENTION_UNIT is not set';
  return unit === 'days' ? `days${stands}` : `days here, seconds at the core: it is a TAK Server release${stands}`;
}

function archivingInWords(archiving: ShownArchiving | null): string {
  if (archiving === null) return 'when they are archived is not known: the core could not be asked';
  const { cron, time_to_archive_after_no_activity_days: idle, remove_from_archive_after_days: removed } = archiving;
  const { archive_mission_by_no_content_activity: content, archive_mission_by_no_subscription_activity: subscription } =
    archiving;
  if (cron === '-' || (!content && !subscription)) return 'are never archived by themselves';
  const what = [...(content ? ['new content'] : []), ...(subscription ? ['subscribers'] : [])].join(' or ');
  return `archived after ${idle} days without ${what}, removed from the archive after ${removed} days (${cron})`;
}

/** Health speaks to programs of addresses. */
function inPageTerms(sentence: string): string {
  const plain = sentence.replace(
    'look at GET /api/retention/preview before',
    'look below at what the next run deletes',
  );
  return capitalised(plain);
}
