// How the whole stack is, in one sentence: what the person on duty reads first.

import { counted } from '../../shared/domain/amounts.ts';
import { type Status, urgency, worstOf } from '../../shared/domain/status.ts';
import type { ModuleState } from '../../shared/ports/health-cache.ts';
import { moduleWords } from './module-words.ts';
import { statusOf } from './since.tsx';

interface Overall {
  status: Status;
  sentence: string;
  since: string | null;
  exact: boolean;
}

export function overallOf(states: readonly ModuleState[]): Overall {
  const unmeasured = states.filter(({ measurement }) => measurement === null).length;
  const status = worstOf(states.map(statusOf));
  if (unmeasured > 0 && urgency(status) <= urgency('note'))
    return {
      status,
      sentence: `Just started: ${unmeasured} of ${counted(states.length, 'part')} ${unmeasured === 1 ? 'is' : 'are'} still to be looked at`,
      since: null,
      exact: false,
    };
  return { status, sentence: sentenceOf(status, states), ...sinceOf(status, states) };
}

function sentenceOf(status: Status, states: readonly ModuleState[]): string {
  const titles = states.filter((state) => statusOf(state) === status).map(({ module }) => moduleWords(module).title);
  const names =
    titles.length > 3 ? `${titles.slice(0, 3).join(', ')} and ${titles.length - 3} more` : titles.join(', ');
  const one = titles.length === 1;
  const warned = states.filter((state) => statusOf(state) === 'warning').length;
  const more = warned === 0 ? '' : `; ${warned} more ${warned === 1 ? 'needs' : 'need'} attention`;
  const sentences: Record<Status, string> = {
    critical: `${counted(titles.length, 'thing')} ${one ? 'is' : 'are'} broken: ${names}${more}`,
    warning: `${counted(titles.length, 'thing')} ${one ? 'needs' : 'need'} attention: ${names}`,
    note: `Everything works, with a note: ${names}`,
    ok: 'Everything works',
  };
  return sentences[status];
}

/** Bad: since the first part became so. All well: since the last part did. */
function sinceOf(status: Status, states: readonly ModuleState[]): Pick<Overall, 'since' | 'exact'> {
  const own = states
    .filter((state) => statusOf(state) === status && state.since !== null)
    .toSorted((a, b) => ((a.since ?? '') < (b.since ?? '') ? -1 : 1));
  const decides = status === 'ok' ? own.at(-1) : own[0];
  return { since: decides?.since ?? null, exact: decides?.since_is_exact ?? false };
}

/** Worst first; among equals in the order of the table. */
export function worstFirst(states: readonly ModuleState[]): ModuleState[] {
  return states.toSorted((a, b) => urgency(statusOf(b)) - urgency(statusOf(a)));
}
