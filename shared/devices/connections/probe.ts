// Checks the whole path of a device: an account that binds and has its group, a certificate, two
// connections, and one CoT event that arrives and is stored. It stops at the first stage that
// fails, and leaves nothing but that event.

import { messageOf } from '@holdfast/kit/app-error';
import type { Directory, DirectoryEntry } from '@holdfast/kit/directory';
import { CHANNEL_PREFIX, nameKey, PROBE_ACCOUNT, PROBE_GROUP } from '@holdfast/kit/names';
import type { CoreDatabase } from '../../core/database/port.ts';
import type { ClientKeys, CoreDevices } from '../../core/devices/port.ts';
import type { Account, Identity } from '../../identity/port.ts';
import { withOneOffPassword } from '../enroll-account.ts';
import type { CertificateStore, MadeCertificate } from '../port.ts';

const STALE_MS = 30_000;

/**
 * Of a type that no device shows, for the probe's own channel alone. It is stored like any other,
 * so that it can be found again. `channel` as devices see it. All of it is our own text: nothing
 * needs escaping.
 */
export function probeEvent(uid: string, channel: string, now: Date): string {
  const time = now.toISOString();
  const stale = new Date(now.getTime() + STALE_MS).toISOString();
  return (
    `<event version="2.0" uid="${uid}" type="t-x-holdfast-probe" how="m-g" time="${time}" start="${time}" stale="${stale}">` +
    '<point lat="0" lon="0" hae="0" ce="9999999" le="9999999"/>' +
    `<detail><marti><dest group="${channel}"/></marti></detail></event>`
  );
}

export interface ProbeDeps {
  now: () => Date;
  identity: Pick<Identity, 'accounts' | 'appPasswords'>;
  directory: Pick<Directory, 'signIn'>;
  certificateStore: Pick<CertificateStore, 'made' | 'revocations'>;
  clientKeys: Pick<ClientKeys, 'kept'>;
  coreDevices: CoreDevices;
  coreDatabase: Pick<CoreDatabase, 'hasEvent'>;
}

export type ProbeStage =
  | 'account'
  | 'bind'
  | 'groups'
  | 'certificate'
  | 'connect'
  | 'send'
  | 'receive'
  | 'store'
  | 'end';

export interface StageResult {
  stage: ProbeStage;
  ok: boolean;
  milliseconds: number;
  /** The problem and the remedy, as sentences; null when there is none. */
  problem: string | null;
}

/** How long each may take. */
const LIMITS_MS: Record<ProbeStage, number> = {
  account: 5_000,
  bind: 8_000,
  groups: 1_000,
  certificate: 5_000,
  connect: 10_000,
  send: 2_000,
  receive: 12_000,
  store: 8_000,
  end: 2_000,
};
/** How long all of them may take, but for the end. */
const ALL_WITHIN_MS = 20_000;
/** A little before the stage gives up. */
const RECEIVE_WITHIN_MS = LIMITS_MS.receive - 500;
/** A core writes events in batches. */
const STORE_WITHIN_MS = 6_000;
const STORE_LOOK_EVERY_MS = 200;

/** Nobody can issue one by hand: the account is the stack's own. */
const ANOTHER_CERTIFICATE =
  'management makes another within 5 minutes, or at once after a restart; otherwise see its log (DIR/logs/management.log)';

/** The stages that were tried, in their order; only the last one can have failed. */
export async function runProbe(deps: ProbeDeps): Promise<StageResult[]> {
  const results: StageResult[] = [];
  const open = new Set<string>();
  const untilMs = deps.now().getTime() + ALL_WITHIN_MS;

  async function stage<T>(name: ProbeStage, work: () => Promise<T>, untilThenMs = untilMs): Promise<T> {
    const begunMs = deps.now().getTime();
    const end = (problem: string | null): void => {
      const milliseconds = Math.max(0, deps.now().getTime() - begunMs);
      results.push({ stage: name, ok: problem === null, milliseconds, problem });
    };
    try {
      const done = await within(Math.max(1, Math.min(LIMITS_MS[name], untilThenMs - begunMs)), name, work());
      end(null);
      return done;
    } catch (error) {
      end(messageOf(error));
      throw new StageFailed();
    }
  }

  async function connected(hash: string): Promise<string> {
    const met = await deps.coreDevices.connect(hash);
    if ('refused' in met)
      throw new Error(
        `The stream refused ${PROBE_ACCOUNT}: ${met.refused}. Remedy: see the module core; if the certificate of ${PROBE_ACCOUNT} was revoked, ${ANOTHER_CERTIFICATE}.`,
      );
    // One that comes too late to be used is closed as well.
    if (results.some(({ ok }) => !ok)) await deps.coreDevices.close(met.connection);
    else open.add(met.connection);
    return met.connection;
  }

  async function closeAll(): Promise<void> {
    const closing = [...open];
    open.clear();
    await Promise.all(closing.map((connection) => deps.coreDevices.close(connection)));
  }

  try {
    const account = await stage('account', () => accountOf(deps));
    const entry = await stage('bind', () => boundEntry(deps, account));
    await stage('groups', async () => checkGroups(entry));
    const { hash } = await stage('certificate', () => probeCertificate(deps));
    const [from, to] = await stage('connect', () => both(connected(hash), connected(hash)));
    const uid = crypto.randomUUID();
    const event = probeEvent(uid, PROBE_GROUP.slice(CHANNEL_PREFIX.length), deps.now());
    await stage('send', () => deps.coreDevices.send(from, event));
    await stage('receive', () => receive(deps, to, uid));
    await stage('store', () => findStored(deps, uid), Infinity);
    await stage('end', closeAll, Infinity);
  } catch (error) {
    if (!(error instanceof StageFailed)) throw error;
  } finally {
    if (open.size > 0) await within(LIMITS_MS.end, 'end', closeAll()).catch(() => undefined);
  }
  return results;
}

class StageFailed extends Error {}

/** Both are settled when it settles, so that neither stays open unseen. */
async function both<T>(one: Promise<T>, other: Promise<T>): Promise<[T, T]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

async function accountOf({ identity }: ProbeDeps): Promise<Account> {
  const account = await identity.accounts.named(PROBE_ACCOUNT);
  if (account === undefined)
    throw new Error(`The provider has no account ${PROBE_ACCOUNT}. Remedy: restart management, which creates it.`);
  if (!account.isActive)
    throw new Error(`The account ${PROBE_ACCOUNT} is not active. Remedy: reactivate it at the provider.`);
  return account;
}

async function boundEntry(deps: ProbeDeps, account: Account): Promise<DirectoryEntry> {
  const entry = await withOneOffPassword(deps, account, (password) =>
    deps.directory.signIn('core', account.username, password),
  );
  if (entry === undefined)
    throw new Error(
      `The directory refuses ${PROBE_ACCOUNT} with a new app password of the provider. Remedy: restart the directory, and check that it is connected to the provider.`,
    );
  return entry;
}

/** Without any group the core would let it speak to everybody who has none. */
function checkGroups({ groups }: DirectoryEntry): void {
  if (groups.some((name) => nameKey(name) === nameKey(PROBE_GROUP))) return;
  const shown = groups.length === 0 ? 'shows no groups' : `does not show the group ${PROBE_GROUP}`;
  throw new Error(
    `The directory accepts ${PROBE_ACCOUNT} but ${shown}, so people would connect and receive nothing. Remedy: restart management, which adds ${PROBE_ACCOUNT} to its group again, and the directory, which may have started before its provider.`,
  );
}

export async function probeCertificate({
  certificateStore,
  clientKeys,
  now,
}: Pick<ProbeDeps, 'certificateStore' | 'clientKeys' | 'now'>): Promise<MadeCertificate> {
  const missing = (why: string): Error => new Error(`${why}. Remedy: ${ANOTHER_CERTIFICATE}.`);
  const [made, revocations] = await Promise.all([
    certificateStore.made([PROBE_ACCOUNT]),
    certificateStore.revocations([PROBE_ACCOUNT]),
  ]);
  if (made.length === 0) throw missing(`${PROBE_ACCOUNT} has no certificate yet`);
  const revoked = new Set(revocations.map(({ hash }) => hash));
  const at = now().getTime();
  const good = made
    .filter(({ hash, expiresAt }) => !revoked.has(hash) && Date.parse(expiresAt) > at)
    .toSorted((a, b) => Date.parse(b.issuedAt) - Date.parse(a.issuedAt));
  if (good.length === 0) throw missing(`Every certificate of ${PROBE_ACCOUNT} has expired or was revoked`);
  const kept = new Set(await clientKeys.kept(good.map(({ hash }) => hash)));
  const found = good.find(({ hash }) => kept.has(hash));
  if (found === undefined) throw missing(`No key is stored for any certificate of ${PROBE_ACCOUNT}`);
  return found;
}

async function receive({ coreDevices }: ProbeDeps, connection: string, uid: string): Promise<void> {
  const came = await coreDevices.received(connection, uid, RECEIVE_WITHIN_MS);
  if (came === undefined)
    throw new Error(
      `An event that ${PROBE_ACCOUNT} sent did not arrive at its other connection. Remedy: restart the core, and check in its log that it reads the groups of the directory and keeps up.`,
    );
}

/**
 * A table that is locked is being written to by nobody else either, and the one who holds it is
 * shown by the module autovacuum.
 */
async function findStored({ coreDatabase }: ProbeDeps, uid: string): Promise<void> {
  const until = performance.now() + STORE_WITHIN_MS;
  do {
    if ((await coreDatabase.hasEvent(uid)) !== false) return;
    await new Promise((over) => setTimeout(over, STORE_LOOK_EVERY_MS));
  } while (performance.now() < until);
  throw new Error(
    `An event that ${PROBE_ACCOUNT} sent arrived but is not in the table cot_router after ${STORE_WITHIN_MS / 1000} s: history is losing positions and messages. Remedy: read the log of the core for failed inserts, check that its role martiuser can insert into cot_router, and check database and disk.`,
  );
}

/** The work itself goes on: its ports end within a few seconds. */
async function within<T>(ms: number, name: ProbeStage, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () =>
      reject(
        new Error(
          `${NAMES[name]} took longer than ${Math.round(ms / 100) / 10} s. Remedy: check identity, core and disk.`,
        ),
      ),
    ms,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

const NAMES: Record<ProbeStage, string> = {
  account: `Asking the provider for ${PROBE_ACCOUNT}`,
  bind: `The bind of ${PROBE_ACCOUNT}`,
  groups: `Reading the groups of ${PROBE_ACCOUNT}`,
  certificate: `Finding the certificate of ${PROBE_ACCOUNT}`,
  connect: `Connecting to the stream`,
  send: `Sending an event`,
  receive: `Receiving the event`,
  store: `Finding the event in the database`,
  end: `Closing the connections`,
};
