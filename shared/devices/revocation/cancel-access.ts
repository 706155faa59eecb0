// Revokes all certificates of a person. The order is stored in our own database before the core is
// called, so it is carried out in the end whatever happens. Only the core's record decides whose
// certificate it is.

import { messageOf } from '@holdfast/kit/app-error';
import { isSameUser } from '@holdfast/kit/names';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { CoreCertificate } from '../../core/port.ts';
import type { Identity } from '../../identity/port.ts';
import type { RevocationDeps, RevocationOrder } from '../port.ts';
import { hasEnded, isOwnCertificate } from '../rules.ts';
import { noteAsRevoking, proveRevocations } from './prove.ts';

export interface CancellationDeps extends RevocationDeps {
  identity: { accounts: Pick<Identity['accounts'], 'named'> };
}

/** Whoever waits for a deactivation does not wait longer for the core. */
const WITHIN_MS = 8_000;
/**
 * An enrollment that was under way when somebody was put out has ended by then: an order is looked
 * at once more.
 */
const STANDS_MS = 10_000;
/** At most so much the clocks of Holdfast and of the core may differ. */
const CLOCKS_DIFFER_MS = 60_000;

/**
 * Resolves when everything that the user has is ordered to be revoked, and revoked as far as the
 * core does it within some seconds. Rejects only when our own database is away. To be called when
 * nothing lets the user enroll any more.
 */
export async function revokeCertificatesOf(
  deps: CancellationDeps,
  username: string,
  { withinMs = WITHIN_MS }: { withinMs?: number } = {},
): Promise<void> {
  const now = deps.now();
  const order = { username, wantedAt: now.toISOString() };
  await deps.certificateStore.order(order);
  const made = await deps.certificateStore.made([username]);
  await noteAsRevoking(
    deps,
    made.filter((each) => !hasEnded(each, now) && !isOwnCertificate(each)),
    order.wantedAt,
  );
  await deps.health.forget('certificates');
  const late = new AbortController();
  await within(withinMs, tryNow(deps, order, late.signal), late);
}

async function within(ms: number, work: Promise<void>, late: AbortController): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    late.abort();
    resolve();
  }, ms);
  try {
    await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** Never rejects: what is ordered is done by a job. */
async function tryNow(deps: CancellationDeps, order: RevocationOrder, signal: AbortSignal): Promise<void> {
  const { username } = order;
  try {
    // The whole list may be long, and whoever waits does not wait for it: the order stays open, and
    // the job reads it.
    await carryOutOrder(deps, order, await listOf(deps, username), signal);
    const revocations = await deps.certificateStore.revocations([username]);
    await proveRevocations(
      deps,
      revocations.filter(({ state }) => state !== 'revoked'),
      signal,
    );
  } catch (error) {
    deps.log.warn('certificates.left_to_job', { username, reason: messageOf(error) });
  }
}

/**
 * Every order; one that cannot be carried out does not keep the others from it. Resolves with how
 * many are open still.
 */
export async function carryOutOrders(deps: CancellationDeps, signal: AbortSignal): Promise<number> {
  const orders = await deps.certificateStore.orders();
  if (orders.length === 0) return 0;
  const whole = await wholeList(deps, orders);
  let open = 0;
  for (const order of orders) {
    open += 1;
    if (signal.aborted) continue;
    try {
      if (await carryOutOrder(deps, order, whole ?? (await listOf(deps, order.username)), signal)) open -= 1;
    } catch (error) {
      // It is away: the others are not asked for one by one.
      if (whole === undefined) return orders.length;
      deps.log.warn('certificates.order_open', { username: order.username, reason: messageOf(error) });
    }
  }
  return open;
}

interface Listed {
  found: readonly CoreCertificate[];
  isWhole: boolean;
}

/** Undefined when it cannot be read. */
async function wholeList(
  { core, log, now }: CancellationDeps,
  orders: readonly RevocationOrder[],
): Promise<Listed | undefined> {
  try {
    return { found: await core.certificates(), isWhole: true };
  } catch (error) {
    // Health says it as long as it lasts.
    const isNew = orders.some(({ wantedAt }) => now().getTime() - Date.parse(wantedAt) < MINUTE_MS);
    if (isNew) log.warn('certificates.list_unreadable', { orders: orders.length, reason: messageOf(error) });
    return undefined;
  }
}

/**
 * Better than nothing: whoever enrolls until the whole list is too long to be read keeps nobody's
 * certificates in force.
 */
async function listOf({ core }: CancellationDeps, username: string): Promise<Listed> {
  return { found: await core.certificates(username), isWhole: false };
}

/**
 * Notes what the order means of all that the core has: a phone may have written the name in another
 * case, and of one name a release finds the exact spelling alone. Resolves with whether it is
 * closed.
 */
async function carryOutOrder(
  deps: CancellationDeps,
  order: RevocationOrder,
  { found, isWhole }: Listed,
  signal: AbortSignal,
): Promise<boolean> {
  const { username, wantedAt } = order;
  if (signal.aborted) return false;
  const now = deps.now();
  const own = found.filter(
    (each) => isSameUser(each.username, username) && !hasEnded(each, now) && !isOwnCertificate(each),
  );
  const until = Date.parse(wantedAt);
  const meant = own.filter((each) => issuedBy(each, until));
  const doubtful = own.filter((each) => !issuedBy(each, until) && issuedBy(each, until + CLOCKS_DIFFER_MS));
  await noteAsRevoking(deps, meant, wantedAt);
  // Asked after the list was read: whoever is out still has enrolled nothing of it since.
  if (doubtful.length > 0 && !(await isBack(deps, username))) await noteAsRevoking(deps, doubtful, wantedAt);
  if (!isWhole || now.getTime() - until < STANDS_MS) return false;
  await deps.certificateStore.closeOrder(order);
  await deps.health.forget('certificates');
  return true;
}

function issuedBy({ issuedAt }: CoreCertificate, ms: number): boolean {
  return Date.parse(issuedAt) <= ms;
}

/** What somebody has enrolled after being let in again is nothing of the order. */
async function isBack({ identity }: CancellationDeps, username: string): Promise<boolean> {
  return (await identity.accounts.named(username))?.isActive === true;
}
