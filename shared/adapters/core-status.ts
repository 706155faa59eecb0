// What the core says of itself, and who tried to enroll at it.

import { z } from 'zod';
import { nameKey } from '../domain/names.ts';
import { oneLine, shortened } from '../domain/plain-text.ts';
import type { Core, CoreStatus, EnrollmentAttempt } from '../ports/core.ts';
import { type CoreCalls, type CorePort, WITHIN_MS } from './core-request.ts';

const VERSION = '/Marti/api/version';
const METRICS = '/actuator/metrics';
const ATTEMPTS = '/Marti/api/tls/attempts';
const MOST_CHARACTERS = 100;
/** What a core without such a list answers: a release has no such path. */
const NOT_TOLD: ReadonlySet<number> = new Set([403, 404, 405]);

const metric = z.object({ measurements: z.array(z.object({ value: z.number() })).min(1) });

const text = z
  .string()
  .nullish()
  .transform((value) => value ?? '');
const attempt = z.object({
  at: z.iso.datetime({ offset: true }).transform((value) => new Date(value).toISOString()),
  address: text,
  username: z.string(),
  clientUid: text,
  result: z.enum(['signed', 'refused']),
  reason: text,
});

export function coreStatus(port: CorePort): Pick<Core, 'status' | 'enrollmentAttempts'> {
  /** Text, whatever type it is sent with; but no page. */
  async function version(calls: CoreCalls): Promise<string> {
    const answer = await calls.ask('GET', VERSION, { headers: { accept: 'text/plain, */*;q=0.5' } });
    if (answer.status !== 200) throw port.failure(`GET ${VERSION}`, answer);
    const said = shortened(oneLine(answer.text), MOST_CHARACTERS);
    if (said === '' || answer.kind === 'page') throw port.wrong(`answers GET ${VERSION} with no version`);
    return said;
  }

  /** Undefined where the core has no such figure. */
  async function figure(
    calls: CoreCalls,
    name: string,
    query: Record<string, string> = {},
  ): Promise<number | undefined> {
    const path = `${METRICS}/${name}`;
    const answer = await calls.ask('GET', path, { query });
    if (answer.status === 404) return undefined;
    return calls.read(`GET ${path}`, answer, metric).measurements[0]?.value;
  }

  return {
    async status(): Promise<CoreStatus> {
      const calls = port.within(WITHIN_MS);
      // Of a JVM: what lies outside the heap has no cap of its own.
      const heap = { tag: 'area:heap' };
      const asked = [
        version(calls),
        figure(calls, 'process.start.time'),
        figure(calls, 'jvm.memory.used', heap),
        figure(calls, 'jvm.memory.max', heap),
      ] as const;
      // The failure is that of the first in this order, whichever is quickest: who tells of changes tells of one.
      await Promise.allSettled(asked);
      const [said, started, used, cap] = await Promise.all(asked);
      return {
        version: said,
        startedAt: started === undefined ? null : new Date(started * 1000).toISOString(),
        // -1 stands for no cap.
        memory: used === undefined ? null : { usedBytes: used, capBytes: cap === undefined || cap <= 0 ? null : cap },
      };
    },

    async enrollmentAttempts(username): Promise<EnrollmentAttempt[] | undefined> {
      const calls = port.within(WITHIN_MS);
      const answer = await calls.ask('GET', ATTEMPTS, { query: { username } });
      if (NOT_TOLD.has(answer.status)) return undefined;
      const { data } = calls.read(`GET ${ATTEMPTS}`, answer, z.object({ data: z.array(attempt) }));
      return data
        .filter((each) => nameKey(each.username) === nameKey(username))
        .toSorted((a, b) => (a.at === b.at ? 0 : a.at < b.at ? 1 : -1));
    },
  };
}
