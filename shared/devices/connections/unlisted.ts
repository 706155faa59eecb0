// Finds connections that the core's messaging log has but its client list lacks: devices that
// connected while the directory did not answer. They stay nameless, without channels and invisible
// until they reconnect.

import { AppError } from '@holdfast/kit/app-error';
import type { Directory } from '@holdfast/kit/directory';
import { ADMIN_ROLE_GROUP } from '@holdfast/kit/names';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { Core } from '../../core/port.ts';
import type { LogFiles } from '../../host/port.ts';
import type { JobRuns } from '../../jobs/port.ts';

export interface LoggedConnection {
  /** The core's own name of the connection: `tls:7`. */
  connection: string;
  callsign: string;
  /** What the device calls itself. */
  uid: string;
}

const BEGAN = / - Started TAK Server messaging /;
const IDENTIFIED = / - Set client for subscription: (\S+:\d+) to (.*) \((.*?)\)(?: source=\S*)?$/;
const REMOVED = / - Removed Subscription: (\S+:\d+)$/;

/**
 * Those that reported and did not end, oldest first, by the lines of `takserver-messaging.log`
 * (releases 4.5 to 5.7 write the same). Names are the devices' own words: trust only what the list
 * of clients then says of `connection`.
 */
export function loggedConnections(lines: readonly string[]): LoggedConnection[] {
  const open = new Map<string, LoggedConnection>();
  for (const line of lines) {
    // A new process counts from 1 again.
    if (BEGAN.test(line)) open.clear();
    const removed = REMOVED.exec(line)?.[1];
    if (removed !== undefined) open.delete(removed);
    const [, connection, callsign = '', uid = ''] = IDENTIFIED.exec(line) ?? [];
    if (connection !== undefined) open.set(connection, { connection, callsign, uid });
  }
  return [...open.values()];
}

/**
 * A device that connects while the directory does not answer the core stays connected without a
 * name: in no channel, in no list, out of reach of a revocation. Once the directory answers again
 * it is disconnected, once: it comes back by itself, with its name.
 */
export interface DisconnectUnlistedDeps {
  core: Pick<Core, 'clients' | 'endConnection'>;
  directory: Pick<Directory, 'probe'>;
  jobRuns: Pick<JobRuns, 'summaries'>;
  logFiles: Pick<LogFiles, 'tail'>;
  now: () => Date;
}

export interface UnlistedRun {
  disconnected: LoggedConnection[];
  /**
   * Nameless again although they were disconnected a short while ago: the directory does not know
   * whom they name.
   */
  left: LoggedConnection[];
}

export interface UnlistedState extends UnlistedRun {
  /** When the last of `disconnected` was; undefined: none within the hour. */
  at: Date | undefined;
}

export const DISCONNECT_UNLISTED = 'disconnect-unlisted';

const LOG = 'takserver-messaging';
const LINES = 20_000;
/** The core adds a new connection to its list within that time. */
const LIST_LAG_MS = 6_000;
const ONCE_WITHIN_MS = 10 * MINUTE_MS;
const SHOWN_MS = 60 * MINUTE_MS;
/** One takes the core about a quarter of a second; the others follow a minute later. */
const MOST = 100;

const NONE: UnlistedRun = { disconnected: [], left: [] };

/**
 * Rejects as the core does. Without that log (the embedded core writes none and needs none) nothing
 * is found.
 */
export async function disconnectUnlisted(
  deps: DisconnectUnlistedDeps,
  signal: AbortSignal,
  lagMs = LIST_LAG_MS,
): Promise<UnlistedRun> {
  const logged = await loggedNow(deps);
  if (logged.length === 0 || !(await isDirectoryThere(deps))) return NONE;
  await new Promise((over) => setTimeout(over, lagMs));
  const listed = new Set((await deps.core.clients()).map(({ connection }) => connection));
  const unlisted = logged.filter(({ connection }) => !listed.has(connection));
  if (unlisted.length === 0) return NONE;
  const before = await recentlyDisconnected(deps);
  const [left, meant] = [true, false].map((was) => unlisted.filter(({ uid }) => before.has(uid) === was)) as [
    LoggedConnection[],
    LoggedConnection[],
  ];
  const disconnected: LoggedConnection[] = [];
  for (const each of meant.slice(-MOST)) {
    if (signal.aborted) break;
    if (await deps.core.endConnection(each.connection)) disconnected.push(each);
  }
  return { disconnected, left: left.slice(-MOST) };
}

/** Whether a run could find anything. */
export async function hasLoggedConnections(deps: Pick<DisconnectUnlistedDeps, 'logFiles'>): Promise<boolean> {
  return (await loggedNow(deps)).length > 0;
}

/** What the runs of the last hour did, for people to see. */
export async function unlistedState(deps: Pick<DisconnectUnlistedDeps, 'jobRuns' | 'now'>): Promise<UnlistedState> {
  const runs = await runsSince(deps, SHOWN_MS);
  const ended = runs.filter(({ run }) => run.disconnected.length > 0);
  const byUid = new Map(ended.flatMap(({ run }) => run.disconnected).map((each) => [each.uid, each]));
  return { disconnected: [...byUid.values()], left: runs[0]?.run.left ?? [], at: ended[0]?.finishedAt };
}

async function loggedNow({ logFiles }: Pick<DisconnectUnlistedDeps, 'logFiles'>): Promise<LoggedConnection[]> {
  const lines = await logFiles.tail(LOG, LINES).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'not_supported') return undefined;
    throw error;
  });
  return loggedConnections(lines ?? []);
}

async function isDirectoryThere({ directory }: DisconnectUnlistedDeps): Promise<boolean> {
  const members = await directory.probe('core', ADMIN_ROLE_GROUP).catch(() => undefined);
  return members !== undefined && members > 0;
}

async function recentlyDisconnected(deps: DisconnectUnlistedDeps): Promise<Set<string>> {
  const runs = await runsSince(deps, ONCE_WITHIN_MS);
  return new Set(runs.flatMap(({ run }) => [...run.disconnected, ...run.left]).map(({ uid }) => uid));
}

async function runsSince(
  { jobRuns, now }: Pick<DisconnectUnlistedDeps, 'jobRuns' | 'now'>,
  withinMs: number,
): Promise<{ finishedAt: Date; run: UnlistedRun }[]> {
  const found = await jobRuns.summaries(DISCONNECT_UNLISTED, new Date(now().getTime() - withinMs));
  return found.map(({ finishedAt, summary }) => ({
    finishedAt,
    run: { ...NONE, ...(summary as Partial<UnlistedRun>) },
  }));
}
