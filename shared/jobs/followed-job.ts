// Waits for and ends jobs that follow work elsewhere: at the core, or at the backup service. Each
// step tells the job what it found.

import type { Attributes } from '@holdfast/kit/json';
import type { Log } from '@holdfast/kit/log';
import { HOUR_MS } from '@holdfast/kit/time';
import type { Audit, Conclusion } from '../audit/port.ts';
import { jobSubject, lastLogText, stated, textOf, timeOf } from './ordered-jobs.ts';
import type { HealthMemory, OpsJob, OpsJobChange, OpsJobs } from './port.ts';

export interface FollowDeps {
  opsJobs: Pick<OpsJobs, 'open' | 'change'>;
  audit: Pick<Audit, 'conclude'>;
  health: HealthMemory;
  log: Log;
  now: () => Date;
}

/** The state of the job after the step; `none`: nothing to do. */
export type Step = 'none' | 'waits' | 'running' | 'ended';

export type EndState = 'succeeded' | 'failed' | 'interrupted';

/** What the jobs of a kind have in common. */
export interface FollowedKind {
  /** Of the health module and of the log lines. */
  name: string;
  /** Why a step waits, and after how many milliseconds of waiting the job has failed. */
  waits: Readonly<Record<string, number>>;
  conclusionOf: (job: Pick<OpsJob, 'state' | 'result' | 'error'>) => Conclusion;
}

/** A job during one step. */
export interface Followed {
  deps: FollowDeps;
  job: OpsJob;
  kind: FollowedKind;
  action: string;
  /** `seq` of the audit intent that the job answers. */
  intent: number;
}

/** True for a log line of waitFor. */
export function isWaiting({ waits }: FollowedKind, text: string): boolean {
  return Object.keys(waits).some((what) => text.startsWith(what));
}

/** Logs each reason once; the lines since the last good answer show how long it has waited. */
export async function waitFor(followed: Followed, what: string, why: string): Promise<Step> {
  const { job, deps, kind } = followed;
  const since = job.log[job.log.findLastIndex((line) => !isWaiting(kind, textOf(line))) + 1];
  const limitMs = kind.waits[what] ?? HOUR_MS;
  if (since !== undefined && deps.now().getTime() - timeOf(since).getTime() > limitMs) {
    const hours = limitMs / HOUR_MS;
    const error = `Given up after ${hours === 1 ? 'an hour' : `${hours} hours`}. ${what}: ${why}`;
    return endFollowed(followed, 'failed', { error });
  }
  if (!lastLogText(job).startsWith(what)) {
    await changeJob(followed, { log: [`${what}: ${why}`] });
    deps.log.warn(`${kind.name}.job_waits`, { job: job.id, reason: why });
  }
  return 'waits';
}

export interface Ending {
  /** A line of its log. */
  text?: string;
  /** Of the log line of this process. */
  fields?: Attributes;
}

/** Concludes the intent, unless the job was ended elsewhere. */
export async function endFollowed(
  followed: Followed,
  state: EndState,
  rest: OpsJobChange,
  { text, fields: more = {} }: Ending = {},
): Promise<Step> {
  const { deps, job, kind, action, intent } = followed;
  const { error = null, result = null } = rest;
  await deps.health.forget(kind.name);
  const isOurs = await changeJob(followed, {
    ...rest,
    state,
    finishedAt: deps.now().toISOString(),
    eta: null,
    ...(state === 'succeeded' ? { progress: 1 } : {}),
    log: [text, error].flatMap((each) => each ?? []),
  });
  if (!isOurs) return 'ended';
  const { detail, ...conclusion } = kind.conclusionOf({ state, result, error });
  await deps.audit.conclude(intent, jobSubject(job, action), { ...conclusion, detail: detail ?? {} });
  const fields = { job: job.id, state, ...more, ...detail };
  if (state === 'succeeded') deps.log.info(`${kind.name}.job`, fields);
  else deps.log.warn(`${kind.name}.job`, fields);
  return 'ended';
}

/** False if the job was ended elsewhere. */
export function changeJob(
  { deps, job }: Pick<Followed, 'deps' | 'job'>,
  { log = [], ...rest }: OpsJobChange,
): Promise<boolean> {
  const now = deps.now();
  return deps.opsJobs.change(job.id, { ...rest, log: log.map((text) => stated(now, text)) });
}
