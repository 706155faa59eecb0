// Collects the proof of a revocation: the date at the core, the serial number in a list that is
// ours, no live stream, a refused handshake when we hold the key, and a refused canary. Reports
// each; changes nothing but closing streams that should have ended.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { mapConcurrent } from '@holdfast/kit/concurrency';
import { isSameUser, nameKey } from '@holdfast/kit/names';
import type { CoreCertificate, CoreClient, CoreStatus, RevocationListContent } from '../../core/port.ts';
import type { CanaryRun, Judgement, Revocation, RevocationDeps } from '../port.ts';
import { hasEnded } from '../rules.ts';

/** One to be proven, as the core's table has it: with a date, or not at all. */
export interface RevocationState {
  revocation: Revocation;
  /** Undefined: it is gone from the table. */
  certificate: CoreCertificate | undefined;
}

export const CONCURRENCY = 8;
/** What the core may need until its list is written and its streams have ended. */
const GRACE_MS = 60_000;

/**
 * Why it is not proven. `seen`: something was seen that must not be; else it is merely not yet so,
 * or not known.
 */
interface Doubt {
  seen: boolean;
  says: string;
}

type Attempted<T> = { value: T } | { problem: string };

async function textOf<T>(work: () => Promise<T>): Promise<Attempted<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** In the order of the standings. `status` is the core's, asked in the same run. */
export async function judgeAll(
  deps: RevocationDeps,
  statuses: readonly RevocationState[],
  status: Pick<CoreStatus, 'startedAt'>,
): Promise<Judgement[]> {
  const [list, streams, kept, canary] = await Promise.all([
    textOf(() => deps.coreAuthority.revocationList()),
    streamsOf(deps, statuses),
    textOf(() => deps.clientKeys.kept(statuses.map(({ revocation }) => revocation.hash))),
    canaryDoubt(deps, status),
  ]);
  return mapConcurrent(statuses, CONCURRENCY, async (accountStatus) => {
    const { hash } = accountStatus.revocation;
    const { streams: seen, doubts } = streams.get(hash) ?? { streams: null, doubts: [] };
    if (hasEnded(accountStatus.revocation, deps.now())) return judgement(seen, doubts);
    const handshake = await handshakeDoubts(deps, hash, kept);
    return judgement(seen, [...listDoubts(accountStatus, list, deps.now()), ...doubts, ...handshake, ...canary]);
  });
}

function judgement(streams: Revocation['streams'], doubts: readonly Doubt[]): Judgement {
  if (doubts.length === 0) return { state: 'revoked', problem: null, streams };
  const seen = doubts.filter((doubt) => doubt.seen);
  const problem = [...seen, ...doubts.filter((doubt) => !doubt.seen)].map(({ says }) => says).join(' ');
  return { state: seen.length > 0 ? 'revocation_failed' : 'revoking', problem, streams };
}

/**
 * True when the core has had its time. What is gone from its table will not be worked at any more.
 */
function isLate({ certificate }: RevocationState, now: Date): boolean {
  const since = certificate?.revokedAt ?? null;
  return since === null || now.getTime() - Date.parse(since) >= GRACE_MS;
}

function listDoubts(status: RevocationState, list: Attempted<RevocationListContent>, now: Date): Doubt[] {
  if ('problem' in list) return [{ seen: false, says: `The revocation list cannot be read: ${list.problem}` }];
  const { ours, serials, thisUpdate, nextUpdate } = list.value;
  if (!ours) return [{ seen: true, says: 'The revocation list is not signed by the CA of the core.' }];
  const seen = isLate(status, now);
  if (nextUpdate !== null && Date.parse(nextUpdate) <= now.getTime())
    return [{ seen, says: `The revocation list was valid until ${nextUpdate} and has not been renewed.` }];
  const { serial } = status.revocation;
  if (serials.includes(serial)) return [];
  if (status.certificate === undefined) return [{ seen, says: goneText(serial) }];
  return [{ seen, says: `The revocation list of ${thisUpdate} does not contain the serial number ${serial}.` }];
}

/** What is said of it begins so. */
export const GONE = "The core's table does not have this certificate any more";

function goneText(serial: string): string {
  return `${GONE}, and its revocation list does not contain the serial number ${serial}, so it is not refused. Remedy: docs/certificates.md, "One that the database does not know".`;
}

interface Streams {
  streams: Revocation['streams'];
  doubts: Doubt[];
}

/**
 * By hash. A core names no certificate per stream: they say something only when the user has no
 * other certificate in force.
 */
async function streamsOf(deps: RevocationDeps, statuses: readonly RevocationState[]): Promise<Map<string, Streams>> {
  const users = new Map(statuses.map(({ revocation: { username } }) => [nameKey(username), username]));
  const connected = await textOf(() => deps.core.clients());
  const clients = 'value' in connected ? connected.value : [];
  const found = await mapConcurrent([...users], CONCURRENCY, async ([key, username]) => {
    return [key, await textOf(() => certificatesInAnyCase(deps, username, clients))] as const;
  });
  const certificates = new Map(found);
  const others = statuses.map(({ revocation }) => othersInForce(revocation, certificates, deps.now()));
  const alone = statuses.filter((_, at) => others[at] === false);
  const live = await liveStreams(deps, new Set(alone.map(({ revocation }) => nameKey(revocation.username))));
  return new Map(
    statuses.map((status, at) => [status.revocation.hash, streamsOfOne(status, others[at] ?? false, live, deps.now())]),
  );
}

/**
 * A core finds certificates in the spelling of the name alone; a phone that is connected says how
 * it has written its own.
 */
async function certificatesInAnyCase(
  { core }: RevocationDeps,
  username: string,
  clients: readonly CoreClient[],
): Promise<CoreCertificate[]> {
  const same = clients.map((client) => client.username).filter((name) => isSameUser(name, username));
  const found = await mapConcurrent([...new Set([username, ...same])], CONCURRENCY, (name) => core.certificates(name));
  return found.flat();
}

function othersInForce(
  { hash, username }: Revocation,
  certificates: ReadonlyMap<string, Attempted<CoreCertificate[]>>,
  now: Date,
): boolean | { problem: string } {
  const own = certificates.get(nameKey(username)) ?? { value: [] };
  if ('problem' in own) return own;
  return own.value.some(
    (each) =>
      each.hash !== hash && isSameUser(each.username, username) && each.revokedAt === null && !hasEnded(each, now),
  );
}

function streamsOfOne(
  status: RevocationState,
  others: boolean | { problem: string },
  live: Attempted<CoreClient[]>,
  now: Date,
): Streams {
  const unknown = (problem: string): Streams => ({
    streams: null,
    doubts: [{ seen: false, says: `The core did not list its clients: ${problem}` }],
  });
  if (others === true) return { streams: 'unverifiable', doubts: [] };
  if (others !== false) return unknown(others.problem);
  if ('problem' in live) return unknown(live.problem);
  const { username } = status.revocation;
  const still = live.value.filter((client) => isSameUser(client.username, username));
  if (still.length === 0) return { streams: 'none', doubts: [] };
  const names = still.map(({ connection }) => connection).join(', ');
  return {
    streams: null,
    doubts: [{ seen: isLate(status, now), says: `${username} is still connected after being disconnected: ${names}.` }],
  };
}

/** The streams of these users that go on after they were ended. */
async function liveStreams(
  { core, log }: RevocationDeps,
  users: ReadonlySet<string>,
): Promise<Attempted<CoreClient[]>> {
  const read = (): Promise<Attempted<CoreClient[]>> =>
    textOf(async () => (await core.clients()).filter(({ username }) => users.has(nameKey(username))));
  if (users.size === 0) return { value: [] };
  const live = await read();
  if ('problem' in live || live.value.length === 0) return live;
  for (const { username, connection, uid } of live.value) {
    const ended = await textOf(() => core.disconnect(connection));
    log.info('stream.ended', { username, connection, uid, ended: 'value' in ended && ended.value });
  }
  return read();
}

async function handshakeDoubts(
  { coreDevices }: RevocationDeps,
  hash: string,
  kept: Attempted<string[]>,
): Promise<Doubt[]> {
  if ('problem' in kept) return [{ seen: false, says: `The stored keys cannot be read: ${kept.problem}` }];
  if (!kept.value.includes(hash)) return [];
  const tried = await Promise.all([
    attempted(async () => {
      const met = await coreDevices.connect(hash);
      if ('refused' in met) return true;
      await coreDevices.close(met.connection);
      return false;
    }, 'The stream accepted a new connection with this certificate.'),
    attempted(
      async () => (await coreDevices.roles(hash)) === undefined,
      'The API of the core accepted a request with this certificate.',
    ),
  ]);
  return tried.flat();
}

/** Nothing but a refusal proves anything; a port that is away says nothing. */
async function attempted(isRefused: () => Promise<boolean>, says: string): Promise<Doubt[]> {
  try {
    return (await isRefused()) ? [] : [{ seen: true, says }];
  } catch (error) {
    // The key is gone: another run has proven it meanwhile.
    if (error instanceof AppError && error.code === 'not_found') return [];
    return [{ seen: false, says: `Couldn't test that it is refused: ${messageOf(error)}` }];
  }
}

async function canaryDoubt(
  { certificateStore }: RevocationDeps,
  { startedAt }: Pick<CoreStatus, 'startedAt'>,
): Promise<Doubt[]> {
  const last = await certificateStore.lastCanary();
  if (last === undefined) return [{ seen: false, says: 'No canary has run yet.' }];
  if (isOfAnotherCore(last, startedAt))
    return [{ seen: false, says: 'The core has restarted, and no canary has run since.' }];
  if (last.ok) return [];
  return last.signed
    ? [{ seen: true, says: `The last canary failed: ${last.problem ?? 'it was accepted'}` }]
    : [{ seen: false, says: `The core did not sign the certificate of the canary: ${last.problem ?? 'no reason'}` }];
}

/** True when the core that the canary ran on was another process. */
export function isOfAnotherCore({ coreStartedAt }: CanaryRun, startedAt: string | null): boolean {
  const time = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso));
  return time(coreStartedAt) !== time(startedAt);
}
