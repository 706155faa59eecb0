// Finishes work that has an intent but no outcome because its process died. Each feature registers
// how to finish its own.

import { z } from 'zod';
import { messageOf } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import { mayBeDone } from './audited.ts';
import type { Audit, AuditResult, Conclusion, OpenIntent } from './port.ts';

/** `open`: still running, or it can't be finished yet. */
export type Finish<Deps> = (
  deps: Deps,
  intent: OpenIntent,
  /** The detail of the intent; undefined when it isn't JSON. */
  detail: unknown,
) => Promise<Conclusion | 'open'>;

/** How a feature finishes its interrupted work. */
export interface InterruptedWork<Deps> {
  /** Audit log actions; one that ends with a dot is a prefix. */
  actions: readonly string[];
  /** Repeats the missing steps. When it rejects, the intent stays open and is retried. */
  finish: Finish<Deps>;
  /** Runs once the outcome is written. */
  finished?: (deps: Deps, intent: OpenIntent) => Promise<void>;
}

interface AuditDeps {
  audit: Pick<Audit, 'conclude'>;
}

const FINISHER = 'finish-intents';

/** Resolves with the result of the outcome that it wrote. */
export async function finishIntent<Deps extends AuditDeps>(
  deps: Deps,
  registered: readonly InterruptedWork<Deps>[],
  intent: OpenIntent,
): Promise<AuditResult | 'open'> {
  const { action, target, request_id: requestId, seq } = intent;
  const work = registered.find(({ actions }) => actions.some((each) => isNamed(action, each)));
  const conclusion = work === undefined ? UNREGISTERED : await work.finish(deps, intent, readDetail(intent));
  if (conclusion === 'open') return 'open';
  const actor = { username: FINISHER, address: '', requestId };
  const detail = { finished_later: true, ...conclusion.detail };
  await deps.audit.conclude(seq, { actor, action, target }, { ...conclusion, detail });
  await work?.finished?.(deps, intent);
  return conclusion.result;
}

/** For an action that can't be finished: its result is unknown. */
export const UNREGISTERED: Conclusion = {
  result: 'unknown',
  detail: { reason: 'the result is unknown' },
};

function isNamed(action: string, name: string): boolean {
  return name.endsWith('.') ? action.startsWith(name) : action === name;
}

export function readDetail({ detail }: { detail: string }): unknown {
  try {
    return JSON.parse(detail) as unknown;
  } catch {
    return undefined;
  }
}

/** After a day without success, people have to take over. */
const GIVEN_UP_MS = DAY_MS;

/** Writes the outcome that `finish` returns or throws; rejects while a retry may still succeed. */
export function concluding<Deps extends { now: () => Date }>(finish: Finish<Deps>): Finish<Deps> {
  return async (deps, intent, detail) => {
    try {
      return await finish(deps, intent, detail);
    } catch (error) {
      if (error instanceof z.ZodError) return { result: 'unknown', detail: { reason: "the intent can't be read" } };
      const isOld = deps.now().getTime() - Date.parse(intent.at) > GIVEN_UP_MS;
      if (mayBeDone(error) && !isOld) throw error;
      return { result: mayBeDone(error) ? 'unknown' : 'failed', detail: { error: messageOf(error) } };
    }
  };
}
