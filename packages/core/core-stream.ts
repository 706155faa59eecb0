// Builds the stream and its parts: groups of people, missions, event archive and presence log.

import { urlHost } from '@holdfast/kit/addresses';
import type { ThinningRow } from '@holdfast/kit/core-wire';
import type { Log } from '@holdfast/kit/log';
import { CORE_VERSION } from './admin/server.ts';
import { type PeopleGroups, rowsOf } from './groups/own-groups.ts';
import type { MissionParts } from './missions/access.ts';
import { createMissions } from './missions/create-missions.ts';
import type { KnownGroup } from './model/parts.ts';
import type { Archive, StreamGroups, StreamOptions } from './model/stream.ts';
import type { ClusterNode } from './cluster.ts';
import type { RunSql } from './store/certificates.ts';
import { type CotWriter, cotWriter } from './store/cot-events.ts';
import { type ActiveGroups, type GroupStore, GroupVectors } from './store/groups.ts';
import { presenceStore } from './store/presence.ts';
import { lossStore } from './store/tables.ts';
import { EventArchive } from './archive/archive.ts';
import type { Injectors } from './stream/injectors.ts';
import { LargeEvents } from './stream/large-events.ts';
import { unwrittenLosses } from './archive/losses.ts';
import { StoredPresenceLog } from './stream/presence-log.ts';
import type { Repeater } from './stream/repeater.ts';
import { Stream } from './stream/stream.ts';
import { AUTO_THINNING } from './stream/thinning.ts';

export interface StreamGroupsParts {
  people: PeopleGroups;
  groups: GroupStore;
  activeGroups: ActiveGroups;
}

/**
 * The groups of a person as the stream needs them: from the directory, with their places, without
 * those switched off.
 */
export function streamGroups({ people, groups, activeGroups }: StreamGroupsParts): StreamGroups {
  const parts = { people, groups: placesKnown(groups), activeGroups };
  return {
    async of({ commonName, channels }) {
      const status = await people.status(commonName);
      if (status === 'closed') return status;
      const rows = await rowsOf(commonName, status, parts, channels);
      return rows
        .filter(({ active }) => active)
        .map(({ group, direction }) => ({ name: group.name, direction, place: group.bitpos }));
    },
    forget: (usernames) => (usernames === undefined ? people.forgetAll() : people.forget(usernames)),
  };
}

/** A group keeps its place for ever: the database is asked for those that were never seen here. */
function placesKnown(groups: GroupStore): GroupStore {
  const known = new Map<string, KnownGroup>();
  return {
    list: () => groups.list(),
    async ensure(names) {
      if (names.some((name) => !known.has(name)))
        for (const group of await groups.ensure(names)) known.set(group.name, group);
      return names.flatMap((name) => known.get(name) ?? []);
    },
  };
}

export interface StoredStreamOptions {
  /** For files of this process alone. */
  ownDirectory: string;
  /** Undefined for a core of its own. */
  cluster: ClusterNode | undefined;
  nodeId: string;
  people: PeopleGroups;
  groups: GroupStore;
  activeGroups: ActiveGroups;
  /** SERVER_ADDRESS. */
  hostname: string;
  /** Of 8443, as devices reach it. */
  publicPort: number;
  /** Of `readMissionTokenKey`. */
  tokenKey: Uint8Array;
  run: RunSql;
  /** Of `eventTable`. */
  runEvents: RunSql;
  /** The same database, on connections that nothing else waits for. */
  runArchive: RunSql;
  /** The writer of the archive, measured. */
  timed: (writer: CotWriter) => CotWriter;
  thinning: readonly ThinningRow[] | 'auto';
  refused: NonNullable<StreamOptions['refused']>;
  log: Log;
  now: () => Date;
}

export interface StoredStream {
  stream: Stream;
  injectors: Injectors;
  repeater: Repeater;
  archive: Archive;
  missions: MissionParts;
  largeEvents: LargeEvents;
  /** Ends every connection, then writes what waits for the database, for at most so long. */
  close(graceMs: number): Promise<void>;
}

export function createStoredStream(options: StoredStreamOptions): StoredStream {
  const { nodeId, hostname, tokenKey, cluster, run, runEvents, runArchive, log, now } = options;
  const vectors = new GroupVectors(runArchive);
  const archive = new EventArchive({
    write: options.timed(cotWriter(runArchive, vectors)),
    losses: lossStore(runArchive),
    unwritten: unwrittenLosses(options.ownDirectory, log),
    log,
    now,
  });
  const store = cluster?.presence(presenceStore(runArchive, vectors), {
    came: (...given) => presence.came(...given),
    went: (...given) => presence.went(...given),
  });
  const presence: StoredPresenceLog = new StoredPresenceLog(runArchive, log, { now, vectors, ...(store && { store }) });
  const missions = createMissions({
    run,
    runEvents,
    tokenKey,
    hostname,
    notices: () => stream,
    connected: { list: () => stream.list() },
    log,
    now,
  });
  const largeEvents = new LargeEvents({ apiUrl: `https://${urlHost(hostname)}:${options.publicPort}`, now });
  const parts = {
    nodeId,
    serverVersion: CORE_VERSION,
    groups: streamGroups(options),
    archive,
    presence,
    missions: missions.posts,
    largeEvents,
    refused: options.refused,
    log,
    now,
    thinning: options.thinning === 'auto' ? AUTO_THINNING : options.thinning,
  };
  const stream: Stream = new Stream(parts, cluster?.mesh);
  return {
    stream,
    injectors: stream.injectors,
    repeater: stream.repeater,
    archive,
    missions: missions.parts,
    largeEvents,
    async close(graceMs) {
      await stream.close();
      await cluster?.close();
      await Promise.all([archive.close(graceMs), presence.close(graceMs)]);
    },
  };
}
