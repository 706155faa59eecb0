// A database of the core as a vacuum meets it, in memory: statements run until the test ends them.

import { AppError } from '@holdfast/kit/app-error';
import { isNoticeText } from '@holdfast/kit/text';
import type { CoreNotices } from '../../shared/core/port.ts';
import type {
  CoreVacuum,
  LockHolder,
  VacuumFacts,
  VacuumOrder,
  VacuumStatement,
  VacuumTable,
} from '../../shared/database/port.ts';

export interface FakeTable extends VacuumTable {
  oid: number;
  filenode: number;
  vacuums: number;
  holders: LockHolder[];
}

export interface FakeVacuum {
  tables: FakeTable[];
  /** By job. */
  statements: Map<string, { order: VacuumOrder; shown: VacuumStatement; words: string | null }>;
  begun: VacuumOrder[];
  maxWalBytes: number;
  startedAt: string;
  /** What the clients were told; undefined: this core has no such call. */
  notices: string[] | undefined;
  clients: number;
  /** The statement of that job ends: `error` is its SQLSTATE; a FULL gives `reclaimable_bytes` back. */
  end(job: string, error?: string, words?: string): void;
  /** The database dies, and every statement with it. */
  die(): void;
  vacuumFacts: VacuumFacts;
  coreVacuum: CoreVacuum;
  coreNotices: CoreNotices;
}

export function fakeTable(table: string, bytes: number, members: Partial<FakeTable> = {}): FakeTable {
  const shown = { schema: 'public', table, bytes, reclaimable_bytes: bytes / 4, dead_tuples: 10, live_tuples: 1000 };
  const own = { oid: 16_000 + bytes, filenode: 1, vacuums: 0, holders: [], allowed: true, elsewhere: false };
  return { ...shown, ...own, ...members };
}

export function fakeVacuum(): FakeVacuum {
  const found = (schema: string, name: string): FakeTable | undefined =>
    made.tables.find((each) => each.schema === schema && each.table === name);

  const made: FakeVacuum = {
    tables: [fakeTable('cot_router', 8e9), fakeTable('cot_router_chat', 1e6)],
    statements: new Map(),
    begun: [],
    maxWalBytes: 1024 ** 3,
    startedAt: '2026-03-01T00:00:00.000Z',
    notices: [],
    clients: 3,
    end(job, error, words) {
      const statement = made.statements.get(job);
      const table = statement && found(statement.order.schema, statement.order.table);
      if (statement === undefined || table === undefined) throw new Error(`no statement of ${job}`);
      statement.shown = { state: 'ended', error: error ?? null };
      statement.words = words ?? null;
      if (error !== undefined) return;
      table.dead_tuples = 0;
      if (statement.order.mode === 'standard') table.vacuums++;
      else rewrite(table);
    },
    die() {
      made.statements.clear();
    },
    vacuumFacts: {
      tables: async () => made.tables.toSorted((a, b) => b.bytes - a.bytes).map(viewOf),
      async marks(schema, table) {
        const it = found(schema, table);
        if (it === undefined) return undefined;
        const { oid, filenode, vacuums, bytes, dead_tuples } = it;
        return { oid, filenode, vacuums, bytes, dead_tuples };
      },
      holders: async (_mode, schema, table) => structuredClone(found(schema, table)?.holders ?? []),
      statement: async (job) => structuredClone(made.statements.get(job)?.shown),
      server: async () => ({ max_wal_bytes: made.maxWalBytes, started_at: made.startedAt }),
    },
    coreVacuum: {
      async begin(order) {
        if (made.statements.get(order.job)?.shown.state === 'running')
          throw new AppError('conflict', 'The statement of this job still runs.');
        if (found(order.schema, order.table)?.oid !== order.oid)
          throw new AppError('upstream', `The table ${order.schema}.${order.table} is another one.`);
        made.begun.push(structuredClone(order));
        const shown = { state: 'running', pid: 1234, waits: false, phase: null, percent: null } as const;
        made.statements.set(order.job, { order, shown, words: null });
      },
      async settle(job) {
        const words = made.statements.get(job)?.words ?? null;
        made.statements.delete(job);
        return words;
      },
    },
    coreNotices: {
      async announce(text) {
        if (made.notices === undefined) return undefined;
        if (!isNoticeText(text)) throw new AppError('invalid', 'The core did not send this notice to its clients.');
        made.notices.push(text);
        return made.clients;
      },
    },
  };
  return made;
}

function viewOf(table: FakeTable): VacuumTable {
  const { schema, table: name, bytes, reclaimable_bytes, dead_tuples, live_tuples, allowed, elsewhere } = table;
  return { schema, table: name, bytes, reclaimable_bytes, dead_tuples, live_tuples, allowed, elsewhere };
}

function rewrite(table: FakeTable): void {
  table.filenode++;
  table.bytes -= table.reclaimable_bytes ?? 0;
  table.reclaimable_bytes = 0;
}
