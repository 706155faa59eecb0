// Size of the core's database and how it grows, and whether it and ours take a write.

import { bytesInWords } from '../domain/amounts.ts';
import { type Finding, limitsOf } from '../domain/evaluate.ts';
import { messageOf } from '../domain/thrown.ts';
import type { DatabaseSize, EventLosses } from '../ports/core-database.ts';
import type { ServerFacts } from '../ports/server-facts.ts';
import { type DatabaseGrowth, databaseGrowth, growsInWords } from './database-growth.ts';
import { settingFindings } from './database-settings.ts';
import { readVolume, type VolumeData, volumeFindings } from './database-volume.ts';
import { walFindings } from './database-wal.ts';
import { AS_SUPERUSER, healthModule } from './module.ts';

interface DatabaseData extends DatabaseSize, DatabaseGrowth, VolumeData {
  server: ServerFacts;
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

export const database = healthModule<DatabaseData>({
  name: 'database',

  remedy: [
    'Read the log of the database: DIR/logs/database.log in the embedded stack, docker compose logs --tail 100 NAME with containers (docker compose ps shows the names).',
    'Look for room with df -h: a full disk stops every write, and freeing some heals it at once, without a restart; for events that were not stored, archive.behind and archive.lost in DIR/logs/core.log say since when and why: they are missing in the history only.',
    'If the database has only grown, decide how long data must be kept (COT_RETENTION_DAYS, GEOCHAT_RETENTION_DAYS), or enlarge the disk and raise MON_DATABASE_WARNING and MON_DATABASE_CRITICAL.',
    AS_SUPERUSER,
  ],

  async read(monitored, thresholds) {
    const { coreDatabase, state, containers, wanted } = monitored;
    const facts = coreDatabase.server();
    const [server, volume, size, losses, connectError, writeError, growth] = await Promise.all([
      facts,
      facts.then(({ data_directory: directory }) => readVolume({ containers, wanted }, directory)),
      coreDatabase.size(),
      coreDatabase.eventLosses(),
      errorOf(coreDatabase.connect()),
      errorOf(state.writeOnce()),
      databaseGrowth(monitored, thresholds),
    ]);
    const overhead = size.total_bytes - size.live_bytes;
    return {
      ...size,
      ...volume,
      server,
      overhead_bytes: overhead,
      connect_error: connectError,
      write_error: writeError,
      lost_events: lostEvents(losses),
      losses: typeof losses === 'string' ? null : losses,
      ...growth,
    };
  },

  findings(data, thresholds) {
    const facts: Finding[] = [];
    if (data.connect_error !== null)
      facts.push({ kind: 'fact', status: 'critical', says: `a new connection is refused: ${data.connect_error}` });
    if (data.write_error !== null)
      facts.push({ kind: 'fact', status: 'critical', says: `a test write failed: ${data.write_error}` });
    facts.push(
      ...settingFindings(data.server),
      ...walFindings(data, data.server),
      ...volumeFindings(data, data.server),
    );
    if (data.losses !== null) {
      const { events, began, ended, reason } = data.losses;
      const says = `${events} events of the last 24 h were not stored, between ${began} and ${ended}: ${reason}`;
      facts.push({ kind: 'fact', status: 'warning', says });
    }
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

  well: ({ total_bytes, live_bytes, ...growth }) =>
    `${bytesInWords(total_bytes)}, of which ${bytesInWords(live_bytes)} are live; a test write succeeded${growsInWords(growth)}.`,

  trend: { name: 'size', unit: 'bytes', limits: limitsOf, figureOf: ({ total_bytes }) => total_bytes },
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
