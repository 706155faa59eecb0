// Requests the right to use the core's admin API for a service account, and confirms it.

import { AppError } from '@holdfast/kit/app-error';
import type { CoreDevices } from '../../core/devices/port.ts';
import type { AdminGrants } from '../../devices/port.ts';

export interface AdminRightDeps {
  adminGrants: Pick<AdminGrants, 'give'>;
  coreDevices: Pick<CoreDevices, 'roles'>;
}

const RIGHT = 'ROLE_ADMIN';
const EVERY_MS = 500;
const WITHIN_MS = 10_000;

/** It was asked for; the core may give it any moment. */
export class AdminRightPending extends AppError {}

/**
 * Resolves when the core lets that certificate do what administrators do; rejects with
 * AdminRightPending (`upstream`) when that was not seen in time. Its key must be kept. The user
 * manager of a release alone takes 4 s.
 */
export async function giveAdminRight(
  { adminGrants, coreDevices }: AdminRightDeps,
  { username, hash, certificatePem }: { username: string; hash: string; certificatePem: string },
  withinMs = WITHIN_MS,
): Promise<void> {
  await adminGrants.give(username, certificatePem);
  const unseen = await untilSeen(() => coreDevices.roles(hash), withinMs);
  if (unseen === undefined) return;
  throw new AdminRightPending(
    'upstream',
    `The core did not confirm the admin API right of ${username} within ${withinMs / 1000} s: ${unseen.why}.`,
    { cause: unseen.cause },
  );
}

interface Unseen {
  why: string;
  cause?: AppError;
}
const NO_ANSWER: Unseen = { why: 'the core did not answer' };
const NOT_GIVEN: Unseen = { why: "check the core's log for a refusal" };

/**
 * Resolves in time with what the last look that ended has seen instead, however long each takes.
 */
async function untilSeen(
  roles: () => Promise<readonly string[] | undefined>,
  withinMs: number,
): Promise<Unseen | undefined> {
  const until = performance.now() + withinMs;
  const { promise: over, resolve: end } = Promise.withResolvers<'over'>();
  const timer = setTimeout(() => end('over'), withinMs);
  let last = NO_ANSWER;
  try {
    while (performance.now() < until) {
      const seen = await Promise.race([look(roles), over]);
      if (seen === 'over') break;
      if (seen === undefined) return undefined;
      last = seen;
      await Promise.race([new Promise((resolve) => setTimeout(resolve, EVERY_MS)), over]);
    }
  } finally {
    clearTimeout(timer);
  }
  return last;
}

async function look(roles: () => Promise<readonly string[] | undefined>): Promise<Unseen | undefined> {
  try {
    return (await roles())?.includes(RIGHT) === true ? undefined : NOT_GIVEN;
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    return { why: cause.message.replace(/\.$/, ''), cause };
  }
}
