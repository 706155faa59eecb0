// Reads and changes retention through the core's admin API. A change counts only once it is read
// back: a core answers 200 to a schedule that it ignores.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import type { CoreRetentionRun, RetentionRunOrder } from '@holdfast/kit/core-wire';
import { NEVER, RETAINED, type Retained } from '@holdfast/kit/retention';
import { foreignWords } from '@holdfast/kit/text';
import { type Answer, quoted } from './answers.ts';
import type { CoreRetention, CoreRetentionPolicy, MissionArchiving } from './port.ts';
import { type CoreCalls, type CorePort, dataOf } from './request.ts';

const BASE = '/Marti/api/retention';
const POLICY = `${BASE}/policy`;
const SCHEDULE = `${BASE}/service/schedule`;
const ARCHIVING = `${BASE}/missionarchiveconfig`;
const RUNS = `${BASE}/runs`;
/** For one method: a change takes several requests, under a lock that others wait for. */
const WITHIN_MS = 5_000;
const MAX_BYTES = 1024 * 1024;
const MAX_RUNS = 1_000;
/** The status of a core that lacks this call. */
const NO_SUCH_CALL: ReadonlySet<number> = new Set([404, 405, 501]);
const JSON_TYPE = { 'content-type': 'application/json' };
const TEXT_TYPE = { 'content-type': 'text/plain' };

const kept = z
  .number()
  .nullish()
  .transform((value) => value ?? null);
const policySchema: z.ZodType<CoreRetentionPolicy> = z.object({
  cot: kept,
  geochat: kept,
  files: kept,
  missionpackages: kept,
  missions: kept,
});

const cron = z
  .string()
  .max(1000)
  .nullish()
  .transform((text) => text?.trim() || NEVER);

const archivingSchema = z
  .object({
    cronExpression: cron,
    timeToArchiveAfterNoActivityDays: z.number(),
    removeFromArchiveAfterDays: z.number(),
    archiveMissionByNoContentActivity: z.boolean(),
    archiveMissionByNoSubscriptionActivity: z.boolean(),
  })
  .transform(({ cronExpression, ...rest }): MissionArchiving => ({ cron: cronExpression, ...rest }));

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text).toISOString());
const count = z.number().nonnegative();
const orNull = <T>(schema: z.ZodType<T>) => schema.nullish().transform((value) => value ?? null);

/** Unknown types are omitted. */
const perType = <T>(schema: z.ZodType<T>) =>
  z
    .record(z.string(), schema.nullish())
    .nullish()
    .transform((given) => {
      const known: Partial<Record<Retained, T>> = {};
      for (const type of RETAINED) {
        const value = given?.[type];
        if (value !== undefined && value !== null) known[type] = value;
      }
      return known;
    });

const runSchema: z.ZodType<CoreRetentionRun> = z.object({
  id: z.string().min(1).max(200),
  trigger: z.enum(['schedule', 'order']),
  state: z.enum(['running', 'done', 'failed', 'interrupted']),
  startedAt: time,
  finishedAt: orNull(time),
  limits: perType(time),
  rows: perType(count),
  included: z
    .object({ cot: count, files: count })
    .nullish()
    .transform((value) => value ?? { cot: 0, files: 0 }),
  expected: orNull(count),
  bytes: orNull(count),
  error: orNull(z.string().transform((text) => foreignWords(text, []))),
});

export class HttpCoreRetention implements CoreRetention {
  readonly #port: CorePort;

  constructor(port: CorePort) {
    this.#port = port;
  }

  #begun(): CoreCalls {
    return this.#port.within(WITHIN_MS);
  }

  #readPolicy(calls: CoreCalls): Promise<CoreRetentionPolicy> {
    return calls.data(POLICY, policySchema, { maxBytes: MAX_BYTES });
  }

  #readSchedule(calls: CoreCalls): Promise<string> {
    return calls.data(SCHEDULE, cron, { maxBytes: MAX_BYTES });
  }

  /** Not when the core reports that it can't reach a part of itself. */
  #isNoSuchCall(answer: Answer): boolean {
    return NO_SUCH_CALL.has(answer.status) && this.#port.failure(RUNS, answer).code !== 'unavailable';
  }

  /** The embedded core refuses to change a file that was edited by hand since it was read. */
  #notChanged(what: string, answer: Answer): AppError {
    if (answer.status !== 409) return this.#port.failure(what, answer);
    return new AppError('conflict', `The core made no change${quoted(answer, [])}`);
  }

  policy(): Promise<CoreRetentionPolicy> {
    return this.#readPolicy(this.#begun());
  }

  async changePolicy(change: Partial<CoreRetentionPolicy>): Promise<CoreRetentionPolicy> {
    const calls = this.#begun();
    const question = { headers: JSON_TYPE, body: JSON.stringify(change), maxBytes: MAX_BYTES };
    const answer = await calls.ask('PUT', POLICY, question);
    if (answer.status !== 200) throw this.#notChanged(`PUT ${POLICY}`, answer);
    const found = await this.#readPolicy(calls);
    for (const type of RETAINED) {
      const requested = change[type];
      if (requested !== undefined && requested !== found[type])
        throw this.#port.wrong(
          `was asked to keep ${type} ${format(requested)} but now has ${format(found[type])} in effect`,
        );
    }
    return found;
  }

  schedule(): Promise<string> {
    return this.#readSchedule(this.#begun());
  }

  async changeSchedule(request: string): Promise<string> {
    const calls = this.#begun();
    const question = { headers: TEXT_TYPE, body: request, maxBytes: MAX_BYTES };
    const answer = await calls.ask('PUT', SCHEDULE, question);
    if (answer.status !== 200) throw this.#notChanged(`PUT ${SCHEDULE}`, answer);
    const found = await this.#readSchedule(calls);
    if (found === request.trim()) return found;
    throw this.#port.wrong(
      `was asked for the schedule "${foreignWords(request, [])}" but has "${foreignWords(found, [])}" in effect`,
    );
  }

  missionArchiving(): Promise<MissionArchiving> {
    return this.#begun().data(ARCHIVING, archivingSchema, { maxBytes: MAX_BYTES });
  }

  async begin(order: RetentionRunOrder): Promise<CoreRetentionRun> {
    const calls = this.#begun();
    const { maxRows: mostRows, ...rest } = order;
    const body = JSON.stringify({ ...rest, mostRows });
    const answer = await calls.ask('POST', RUNS, { headers: JSON_TYPE, body, maxBytes: MAX_BYTES });
    if (this.#isNoSuchCall(answer))
      throw new AppError(
        'not_supported',
        "This core can't start a retention run on request. It runs only on its schedule.",
      );
    const words = quoted(answer, []);
    if (answer.status === 409) throw new AppError('conflict', `A retention run is already in progress${words}`);
    if (answer.status === 400) throw new AppError('invalid', `The core did not start this run${words}`);
    const run = calls.read(`POST ${RUNS}`, answer, dataOf(runSchema));
    if (run.id === order.id) return run;
    throw this.#port.wrong(`was asked for the run ${order.id} but reported another`);
  }

  async runs(): Promise<CoreRetentionRun[] | undefined> {
    const calls = this.#begun();
    const answer = await calls.ask('GET', RUNS, { maxBytes: MAX_BYTES });
    if (this.#isNoSuchCall(answer)) return undefined;
    return calls.read(`GET ${RUNS}`, answer, dataOf(z.array(runSchema).max(MAX_RUNS)));
  }
}

/** In the unit of the core, which is not known here. */
function format(value: number | null): string {
  return value === null ? 'forever (null)' : `at ${value}`;
}
