// Groups of people on the stream, by the core's admin API.

import { z } from 'zod';
import type { Core } from '../ports/core.ts';
import type { CorePort } from './core-request.ts';

/** Somebody waits for it, and it comes about without it too. */
const WITHIN_MS = 3_000;

export function coreGroups(port: CorePort): Pick<Core, 'regroup'> {
  return {
    async regroup(username) {
      await port.within(WITHIN_MS).data(`/Marti/api/groups/update/${encodeURIComponent(username)}`, z.unknown());
    },
  };
}
