// The core's database of a world in memory, and a server as the embedded stack has it.

import type {
  CoreDatabase,
  DatabaseSize,
  EventLosses,
  ServerFacts,
  SettingOrigin,
  TableStatistics,
  VacuumHolder,
} from '../../shared/core/database/port.ts';

/** What of a world its core's database is. */
export interface DatabaseWorld {
  now: Date;
  tables: TableStatistics[];
  settings: Record<string, string>;
  transactionAge: number;
  holders: VacuumHolder[];
  /** What is not named here comes from a start flag. */
  origins: Record<string, SettingOrigin>;
  server: ServerFacts;
  size: DatabaseSize;
  eventLosses: EventLosses | 'none' | 'unknown';
  clockOffsetMs: number;
  connectError: string | undefined;
  /** Whether the core stores what is sent. */
  stores: boolean | 'locked';
}

const START_FLAG: SettingOrigin = { source: 'command line', file: null, line: null, role: null, database: null };

/** A server as the embedded stack has it. */
export function serverFacts(): ServerFacts {
  const on = { value: 'on', origin: { ...START_FLAG, source: 'default' } };
  const off = { ...on, value: 'off' };
  return {
    role: 'holdfast_ro',
    database: 'cot',
    owner: 'martiuser',
    standby: false,
    slots: [],
    archive: { mode: 'off', command: '', failing: false, failed_wal: null, failed_at: null, archived_at: null },
    wal_keep_bytes: 0,
    settings: {
      archive_mode: { value: 'off', origin: START_FLAG },
      default_transaction_read_only: off,
      fsync: on,
      full_page_writes: on,
      synchronous_commit: on,
    },
    pending_restart: [],
    data_directory: '/data/pgdata',
    md5_roles: [],
    schema_version: null,
  };
}

/** `core` answers, or fails as the world has it. */
export function fakeCoreDatabase(of: DatabaseWorld, core: <T>(value: () => T) => Promise<T>): CoreDatabase {
  return {
    vacuumStatistics: () =>
      core(() => ({ tables: of.tables, settings: of.settings, transaction_age: of.transactionAge })),
    vacuumHolders: () => core(() => of.holders),
    settingOrigins: (names) =>
      core(() => Object.fromEntries(names.map((name) => [name, of.origins[name] ?? START_FLAG]))),
    server: () => core(() => of.server),
    size: () => core(() => of.size),
    eventLosses: () => core(() => of.eventLosses),
    hasEvent: () => core(() => of.stores),
    connect: async () => {
      if (of.connectError !== undefined) throw new Error(of.connectError);
    },
    clockMs: () => core(() => of.now.getTime() + of.clockOffsetMs),
    version: () => core(() => of.size.version),
  };
}
