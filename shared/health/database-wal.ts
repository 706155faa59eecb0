// What keeps WAL in the core's database, and whether its archive takes it: each finding with the command that helps.

import { bytesInWords, utcInWords } from '../domain/amounts.ts';
import type { Fact } from '../domain/evaluate.ts';
import { takenBack } from '../domain/setting-origin.ts';
import type { DatabaseSize } from '../ports/core-database.ts';
import type { ReplicationSlot, ServerFacts } from '../ports/server-facts.ts';

/** WAL beyond this multiple of `max_wal_size` is kept by something that does not take it. */
const MUCH_WAL = 3;

type WalSize = Pick<DatabaseSize, 'wal_bytes' | 'max_wal_bytes'>;

export function walFindings(size: WalSize, server: ServerFacts): Fact[] {
  return [...archiveFindings(server), ...sizeFindings(size, server)];
}

function sizeFindings({ wal_bytes: bytes, max_wal_bytes: limit }: WalSize, server: ServerFacts): Fact[] {
  if (bytes === null)
    return [
      {
        kind: 'fact',
        status: 'note',
        says: `the size of WAL cannot be seen; GRANT pg_monitor to the role ${server.role}`,
        remedy: `As a superuser of the core's database: GRANT pg_monitor TO ${server.role};`,
      },
    ];
  if (bytes <= limit * MUCH_WAL) return [];
  const { why, remedy } = keeper(server, limit);
  const says = `WAL takes ${bytesInWords(bytes)}, max_wal_size is ${bytesInWords(limit)}: ${why}`;
  return [{ kind: 'fact', status: 'warning', says, remedy }];
}

function keeper(server: ServerFacts, limit: number): { why: string; remedy: string } {
  const [slot] = server.slots.filter(({ retained_bytes }) => (retained_bytes ?? 0) > limit);
  if (slot !== undefined) return keptForSlot(slot);
  if (archiveTakesNothing(server)) return { why: 'its archive takes none', remedy: ARCHIVE_REMEDY };
  if (server.wal_keep_bytes > limit)
    return {
      why: `wal_keep_size keeps ${bytesInWords(server.wal_keep_bytes)}`,
      remedy: 'If no standby needs it: ALTER SYSTEM RESET wal_keep_size; SELECT pg_reload_conf(); CHECKPOINT;',
    };
  return {
    why: 'no slot, archive or wal_keep_size keeps it, so a checkpoint is late or much was written at once',
    remedy: 'As a superuser: CHECKPOINT; and if WAL stays, look for slow disks in the log of the database.',
  };
}

function keptForSlot({ name, active, retained_bytes }: ReplicationSlot): { why: string; remedy: string } {
  const drop = `SELECT pg_drop_replication_slot(${name});`;
  return {
    why: `the replication slot ${name}, which ${active ? 'is behind' : 'nobody uses'}, keeps ${bytesInWords(retained_bytes ?? 0)}`,
    remedy: active
      ? `Look why the standby or reader of the slot ${name} is slow; if it is not needed, stop it, then ${drop}`
      : `If nothing will use the slot again: ${drop} CHECKPOINT; or start what reads it.`,
  };
}

const ARCHIVE_REMEDY =
  "Repair what archive_command needs (SHOW archive_command;). If nobody uses the archive: ALTER SYSTEM SET archive_command = '/bin/true'; SELECT pg_reload_conf(); then ALTER SYSTEM SET archive_mode = 'off'; and restart the server.";

function archiveTakesNothing({ archive: { mode, command, failing } }: ServerFacts): boolean {
  return mode !== 'off' && (failing || command === '');
}

function archiveFindings(server: ServerFacts): Fact[] {
  if (!archiveTakesNothing(server)) return [];
  const { mode, command, failed_wal: wal, failed_at: at, archived_at: last } = server.archive;
  if (command === '') {
    const says = `archiving WAL has no command (archive_mode is ${mode}), so WAL will fill the disk`;
    const back = takenBack('archive_mode', server.settings.archive_mode.origin, { wanted: 'off' });
    const remedy = `Set archive_command, or, if nobody uses an archive: ${back} Then restart the server.`;
    return [{ kind: 'fact', status: 'warning', says, remedy }];
  }
  const before =
    last === null ? 'none was ever archived' : `the last one that was archived went at ${utcInWords(last)}`;
  const says = `archiving WAL fails, so WAL will fill the disk: ${command} did not take ${wal ?? 'a file'} at ${at === null ? 'an unknown time' : utcInWords(at)}; ${before}`;
  return [{ kind: 'fact', status: 'warning', says, remedy: ARCHIVE_REMEDY }];
}
