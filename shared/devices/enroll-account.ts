// Enrolls an account as a device does: with a one-off app password and a key of ours.

import { MINUTE_MS } from '@holdfast/kit/time';
import type { CoreEnrollment, EnrolledCertificate } from '../core/devices/port.ts';
import type { Account, Identity } from '../identity/port.ts';

export interface OneOffDeps {
  identity: Pick<Identity, 'appPasswords'>;
  now: () => Date;
}

const ENDS_AFTER_MS = 5 * MINUTE_MS;

/**
 * What our own one-off passwords are called at the provider, so that one that a crash left behind
 * is known.
 */
const ONE_OFF_PREFIX = 'holdfast-once-';

/**
 * Does `work` with an app password of that account, and deletes it afterwards, whatever came of the
 * work. One that a crash leaves behind ends by itself within minutes.
 */
export async function withOneOffPassword<T>(
  { identity, now }: OneOffDeps,
  { id, username }: Pick<Account, 'id' | 'username'>,
  work: (password: string) => Promise<T>,
): Promise<T> {
  const { appPasswords } = identity;
  const identifier = `${ONE_OFF_PREFIX}${crypto.randomUUID()}`;
  const { key } = await appPasswords.create({
    identifier,
    accountId: id,
    description: `Holdfast enrolls ${username}`,
    expiresAt: new Date(now().getTime() + ENDS_AFTER_MS),
  });
  let done: T;
  try {
    done = await work(key);
  } catch (error) {
    // What went wrong first is what counts.
    await appPasswords.delete(identifier).catch(() => undefined);
    throw error;
  }
  await appPasswords.delete(identifier);
  return done;
}

/** A new key and its certificate; nothing is kept of them yet. Errors as of the ports. */
export async function enrollAccount(
  deps: OneOffDeps & { coreEnrollment: Pick<CoreEnrollment, 'enroll'> },
  account: Pick<Account, 'id' | 'username'>,
  clientUid: string,
): Promise<EnrolledCertificate> {
  return withOneOffPassword(deps, account, (password) =>
    deps.coreEnrollment.enroll({ username: account.username, password, clientUid }),
  );
}
