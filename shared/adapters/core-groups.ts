// Groups of people on the stream, by the core's admin API.

import type { Core } from '../ports/core.ts';
import type { CorePort } from './core-request.ts';

/** Somebody waits for it, and it comes about without it too. */
const WITHIN_MS = 3_000;

export function coreGroups(port: CorePort): Pick<Core, 'regroup'> {
  return {
    async regroup(username) {
      const path = `/Marti/api/groups/update/${encodeURIComponent(username)}`;
      // A release answers with nothing, and with the same nothing for a name that it does not know.
      const answer = await port.within(WITHIN_MS).ask('GET', path);
      if (answer.status !== 200) throw port.failure(`GET ${path}`, answer);
    },
  };
}
