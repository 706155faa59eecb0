// Keeps the retention variables in force: in the core while it is running, else in its files.

import type { Deps } from '../shared/http/deps.ts';
import { asksForRetention, syncRetention } from '../shared/retention/sync.ts';

/** Without a variable there is nothing to correct. */
export async function isWanted({ monitored }: Deps): Promise<boolean> {
  return asksForRetention(monitored.wanted.retention);
}

export async function run(deps: Deps, _now: Date, signal: AbortSignal): Promise<{ changed: number }> {
  const { where, messages } = await syncRetention(deps, deps.monitored.wanted.retention, signal);
  if (messages.length > 0) deps.log.info('retention.synced', { where, messages });
  return { changed: messages.length };
}
