// Size of the core's database, and whether it and ours take a write.

import { bytesInWords } from '../domain/amounts.ts';
import { type Finding, limitsOf } from '../domain/evaluate.ts';
import { messageOf } from '../domain/thrown.ts';
import type { DatabaseSize, EventLosses } from '../ports/core-database.ts';
import { healthModule } from './module.ts';

interface DatabaseData extends DatabaseSize {
  /** System catalogues (10 to 15 MB) and what a VACUUM FULL would give back. */
  overhead_bytes: number;
  /** Null when a new connection was accepted. */
  connect_error: string | null;
  /** Null when the write succeeded. */
  write_error: string | null;
  /** Of the last 24 h; null where nobody counts them. */
  lost_events: number | null;
  losses: EventLosses | null;
}

/** WAL beyond this multiple of `max_wal_size` is kept by something that does not take it. */
const MUCH_WAL = 3;

export const database = healthModule<DatabaseData>({
  name: 'database',

  remedy: [
    'Read the log of the database: DIR/logs/database.log in the embedded stack, docker compose logs --tail 100 NAME with containers (docker compose ps shows the names).',
    'Look for room with df -h: a full disk stops every write, and freeing some heals it at once, without a restart; for events that were not stored, archive.behind and archive.lost in DIR/logs/core.log say since when and why: they are missing in the history only.',
    'If the database has only grown, decide how long data must be kept (COT_RETENTION_DAYS, GEOCHAT_RETENTION_DAYS), or enlarge the disk and raise MON_DATABASE_WARNING and MON_DATABASE_CRITICAL.',
    "If WAL grows, see who keeps it with SELECT slot_name, active FROM pg_replication_slots; as a superuser, and drop a slot that nobody uses with SELECT pg_drop_replication_slot('SLOT');",
  ],

  async read({ coreDatabase, state }) {
    const [size, losses, connectError, writeError] = await Promise.all([
      coreDatabase.size(),
      coreDatabase.eventLosses(),
      errorOf(coreDatabase.connect()),
      errorOf(state.writeOnce()),
    ]);
    const overhead = size.total_bytes - size.live_bytes;
    return {
      ...size,
      overhead_bytes: overhead,
      connect_error: connectError,
      write_error: writeError,
      lost_events: lostEvents(losses),
      losses: typeof losses === 'string' ? null : losses,
    };
  },

  findings(data, thresholds) {
    const facts: Finding[] = [];
    if (data.connect_error !== null)
      facts.push({ kind: 'fact', status: 'critical', says: `a new connection is refused: ${data.connect_error}` });
    if (data.write_error !== null)
      facts.push({ kind: 'fact', status: 'critical', says: `a test write failed: ${data.write_error}` });
    if (data.read_only) facts.push({ kind: 'fact', status: 'critical', says: 'the database takes no writes' });
    if (data.archive_failing)
      facts.push({
        kind: 'fact',
        status: 'warning',
        says: 'archiving WAL fails or has no command, so WAL will fill the disk',
      });
    if (data.losses !== null) {
      const { events, began, ended, reason } = data.losses;
      const says = `${events} events of the last 24 h were not stored, between ${began} and ${ended}: ${reason}`;
      facts.push({ kind: 'fact', status: 'warning', says });
    }
    if (data.wal_bytes === null)
      facts.push({
        kind: 'fact',
        status: 'note',
        says: 'the size of WAL cannot be seen; GRANT pg_monitor to the role',
      });
    else if (data.wal_bytes > data.max_wal_bytes * MUCH_WAL)
      facts.push({
        kind: 'fact',
        status: 'warning',
        says: `WAL takes ${bytesInWords(data.wal_bytes)}, max_wal_size is ${bytesInWords(data.max_wal_bytes)}: look for a replication slot or an archive command that does not take it`,
      });
    return [
      ...facts,
      {
        kind: 'figure',
        subject: 'the database',
        value: data.total_bytes,
        limits: limitsOf(thresholds),
        says: bytesInWords(data.total_bytes),
        inWords: bytesInWords,
      },
    ];
  },

  well: ({ total_bytes, live_bytes }) =>
    `${bytesInWords(total_bytes)}, of which ${bytesInWords(live_bytes)} are live; a test write succeeded.`,
});

function lostEvents(losses: EventLosses | 'none' | 'unknown'): number | null {
  if (losses === 'unknown') return null;
  return losses === 'none' ? 0 : losses.events;
}

async function errorOf(action: Promise<void>): Promise<string | null> {
  return action.then(
    () => null,
    (error: unknown) => messageOf(error),
  );
}
