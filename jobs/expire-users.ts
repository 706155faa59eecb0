// Deactivates expired accounts, including programs. A failure does not stop the others. Accounts
// that must be kept (the first and the last administrator) are logged in each run until resolved.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { Deps } from '../shared/http/deps.ts';
import type { Account } from '../shared/identity/port.ts';
import { EXPIRES } from '../shared/identity/rules.ts';
import { expireUser, isOverdue } from '../shared/people/deactivate-user.ts';

const ACTOR = { username: 'expire-users', address: '', requestId: '' };
const PAGE_SIZE = 100;
const CONCURRENCY = 8;

export interface ExpirySummary extends Record<string, unknown> {
  expired: number;
  kept: number;
  failed: number;
}

export async function run(deps: Deps, now: Date, signal: AbortSignal): Promise<ExpirySummary> {
  const summary = { expired: 0, kept: 0, failed: 0 };
  const at = { ...deps, now: () => now };
  const waiting = await overdue(at, now, signal);
  async function worker(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift())
      summary[await outcomeOf(at, next)] += 1;
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return summary;
}

/** Some providers sort text below every number, so values that are not numbers are dropped here. */
async function overdue(deps: Deps, now: Date, signal: AbortSignal): Promise<Account[]> {
  const attributes = { [`${EXPIRES}__lte`]: Math.floor(now.getTime() / 1000) };
  const found: Account[] = [];
  for (let page = 1; !signal.aborted; page += 1) {
    const query = { page, pageSize: PAGE_SIZE, attributes, isActive: true, kinds: ['person', 'service'] } as const;
    const { results, count } = await deps.identity.accounts.list(query);
    found.push(...results.filter((account) => isOverdue(account, deps)));
    if (page * PAGE_SIZE >= count) break;
  }
  return found;
}

async function outcomeOf(deps: Deps, { id, username }: Account): Promise<keyof typeof EVENTS> {
  try {
    const account = await expireUser({ deps, actor: ACTOR }, { id });
    if (account.isActive) return 'kept';
    deps.log.info(EVENTS.expired, { username });
    return 'expired';
  } catch (error) {
    const outcome = error instanceof AppError && error.code === 'conflict' ? 'kept' : 'failed';
    deps.log.warn(EVENTS[outcome], { username, reason: messageOf(error) });
    return outcome;
  }
}

const EVENTS = { expired: 'user.expired', kept: 'user.not_expired', failed: 'user.expiry_failed' } as const;
