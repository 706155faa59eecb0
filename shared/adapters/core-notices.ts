// A word to everybody who is connected, by the core's admin API: a call that only the embedded core has.

import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import type { CoreNotices } from '../ports/core-notices.ts';
import { quoted } from './core-answers.ts';
import type { CorePort } from './core-request.ts';

const NOTICES = '/Marti/api/stream/notices';
const WITHIN_MS = 5_000;
const MOST_BYTES = 64 * 1024;
/** What a core answers that has no such call. */
const NO_SUCH_CALL: ReadonlySet<number> = new Set([404, 405, 501]);
const JSON_TYPE = { 'content-type': 'application/json' };

const toldSchema = z
  .object({ data: z.object({ clients: z.int().nonnegative() }) })
  .transform(({ data }) => data.clients);

export function coreNotices(port: CorePort): CoreNotices {
  return {
    async announce(text) {
      const calls = port.within(WITHIN_MS);
      const question = { headers: JSON_TYPE, body: JSON.stringify({ text }), mostBytes: MOST_BYTES };
      const answer = await calls.ask('POST', NOTICES, question);
      // Not so when the core says that it does not reach a part of itself.
      if (NO_SUCH_CALL.has(answer.status) && port.failure(NOTICES, answer).code !== 'unavailable') return undefined;
      if (answer.status === 400)
        throw new AppError('invalid', `The core does not tell this to its clients${quoted(answer, [])}`);
      return calls.read(`POST ${NOTICES}`, answer, toldSchema);
    },
  };
}
