// Settings of the core's database by which data is lost or writing stops: each with the command that takes it back.

import { messageOf } from '@holdfast/kit/app-error';
import { formatBytes, formatUtc } from '@holdfast/kit/format';
import type { DatabaseSize, ReplicationSlot, ServerFacts } from '../../core/database/port.ts';
import { formatOrigin, takenBack } from '../../core/database/server-settings.ts';
import type { Container, ContainerMount } from '../../host/port.ts';
import type { Status } from '../../settings/status.ts';
import type { Fact } from '../evaluate.ts';
import type { Monitored } from '../monitored.ts';

type Watched = keyof ServerFacts['settings'];

const DANGEROUS: readonly { name: Watched; safe: string; status: Status; because: string }[] = [
  { name: 'fsync', safe: 'on', status: 'critical', because: 'a power failure can destroy the whole database' },
  { name: 'full_page_writes', safe: 'on', status: 'warning', because: 'a power failure can destroy pages of tables' },
  {
    name: 'synchronous_commit',
    safe: 'on',
    status: 'note',
    because: 'the last writes before a crash can be lost, although they were confirmed',
  },
];

export function settingFindings(server: ServerFacts): Fact[] {
  const dangerous = DANGEROUS.filter(({ name }) => isOff(server.settings[name].value));
  return [
    ...readOnlyFindings(server),
    ...dangerous.map(({ name, safe, status, because }): Fact => {
      const { value, origin } = server.settings[name];
      const says = `${name} is ${value} (${formatOrigin(origin)}): ${because}`;
      return { kind: 'fact', status, says, remedy: takenBack(name, origin, { wanted: safe }) };
    }),
    ...restartFindings(server.pending_restart),
  ];
}

function isOff(value: string): boolean {
  return /^(off|false|no|0)$/i.test(value);
}

function isOn(value: string): boolean {
  return /^(on|true|yes|1)$/i.test(value);
}

function readOnlyFindings({ standby, settings }: ServerFacts): Fact[] {
  const name = 'default_transaction_read_only';
  const { value, origin } = settings[name];
  const facts: Fact[] = [];
  if (standby)
    facts.push({
      kind: 'fact',
      status: 'critical',
      says: 'the database takes no writes: it is a standby',
      remedy:
        'Let CORE_DATABASE_URL name the primary; or, if the primary is gone for good, make this one the primary, as a superuser: SELECT pg_promote();',
    });
  if (isOn(value))
    facts.push({
      kind: 'fact',
      status: 'critical',
      says: `the database takes no writes: ${name} is ${value} (${formatOrigin(origin)})`,
      // A session that began under the setting is under it, too.
      remedy: `SET ${name} = off; ${takenBack(name, origin, { wanted: 'off' })}`,
    });
  return facts;
}

function restartFindings(names: readonly string[]): Fact[] {
  if (names.length === 0) return [];
  const says = `${names.join(', ')} changed in the configuration and will count from the next start of the server`;
  const remedy =
    'Restart the server at a quiet time (scripts/stop.sh and scripts/start.sh, with containers docker compose restart core-database), or take the change back in the file that has it.';
  return [{ kind: 'fact', status: 'note', says, remedy }];
}

/**
 * Whether the files of the core's database outlive its container: only what lies on a volume or a bind mount does.
 */
export interface VolumeData {
  volume: 'named volume' | 'anonymous volume' | 'bind mount' | 'none' | 'unknown' | 'not applicable';
  /** Why it is unknown, or where the files lie; null when there is nothing to say. */
  volume_detail: string | null;
  /** Null when it was not found. */
  volume_container: string | null;
}

const NOT_APPLICABLE: VolumeData = { volume: 'not applicable', volume_detail: null, volume_container: null };
/** How the engine calls a volume that was given no name. */
const ANONYMOUS = /^[0-9a-f]{64}$/;

export async function readVolume(
  { containers, wanted }: Pick<Monitored, 'containers' | 'wanted'>,
  directory: string | null,
): Promise<VolumeData> {
  if (containers === undefined) return NOT_APPLICABLE;
  const host = wanted.databaseHost;
  if (host === undefined) return unknown('CORE_DATABASE_URL names no host');
  if (directory === null) return unknown('the role may not see data_directory (GRANT pg_monitor)');
  let list: Container[];
  try {
    list = await containers.list();
  } catch (error) {
    return unknown(messageOf(error));
  }
  const container = list.find(({ state, hosts }) => state === 'running' && hosts.includes(host));
  if (container === undefined) return unknown(`no running container is called ${host}`);
  return volumeOf(container, directory);
}

function unknown(why: string): VolumeData {
  return { volume: 'unknown', volume_detail: why, volume_container: null };
}

function volumeOf({ name, mounts }: Container, directory: string): VolumeData {
  const [mount] = mounts
    .filter(({ destination }) => holds(destination, directory))
    .toSorted((one, other) => other.destination.length - one.destination.length);
  const where = mount?.name ?? mount?.destination ?? directory;
  return { volume: kindOf(mount), volume_detail: where, volume_container: name };
}

function holds(destination: string, directory: string): boolean {
  const path = destination.replace(/\/+$/, '');
  return directory === path || directory.startsWith(`${path}/`);
}

function kindOf(mount: ContainerMount | undefined): VolumeData['volume'] {
  if (mount?.type === 'bind') return 'bind mount';
  if (mount?.type !== 'volume') return 'none';
  return ANONYMOUS.test(mount.name ?? '') ? 'anonymous volume' : 'named volume';
}

export function volumeFindings(
  { volume, volume_container: container, volume_detail: detail }: VolumeData,
  { data_directory: directory, database, owner }: ServerFacts,
): Fact[] {
  const dump = `docker exec ${container} pg_dump -Fc -U ${owner} ${database} > core.dump`;
  const remedy = `Save it first: ${dump}; then give its service volumes: ["database:${directory}"], start it anew, and load that with pg_restore.`;
  if (volume === 'none')
    return [
      {
        kind: 'fact',
        status: 'critical',
        says: `the files of the database (${directory}) lie in the container ${container} itself: docker compose down deletes them`,
        remedy,
      },
    ];
  if (volume !== 'anonymous volume') return [];
  return [
    {
      kind: 'fact',
      status: 'warning',
      says: `the files of the database lie on a volume without a name (${detail?.slice(0, 12)}): docker compose down -v deletes it, and a new container gets an empty one`,
      remedy,
    },
  ];
}

/** WAL beyond this multiple of `max_wal_size` is kept by something that does not take it. */
const MUCH_WAL = 3;

type WalSize = Pick<DatabaseSize, 'wal_bytes' | 'max_wal_bytes'>;

/**
 * What keeps WAL in the core's database, and whether its archive takes it: each finding with the command that helps.
 */
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
  const says = `WAL takes ${formatBytes(bytes)}, max_wal_size is ${formatBytes(limit)}: ${why}`;
  return [{ kind: 'fact', status: 'warning', says, remedy }];
}

function keeper(server: ServerFacts, limit: number): { why: string; remedy: string } {
  const [slot] = server.slots.filter(({ retained_bytes }) => (retained_bytes ?? 0) > limit);
  if (slot !== undefined) return keptForSlot(slot);
  if (archiveTakesNothing(server)) return { why: 'its archive takes none', remedy: ARCHIVE_REMEDY };
  if (server.wal_keep_bytes > limit)
    return {
      why: `wal_keep_size keeps ${formatBytes(server.wal_keep_bytes)}`,
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
    why: `the replication slot ${name}, which ${active ? 'is behind' : 'nobody uses'}, keeps ${formatBytes(retained_bytes ?? 0)}`,
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
  const before = last === null ? 'none was ever archived' : `the last one that was archived went at ${formatUtc(last)}`;
  const says = `archiving WAL fails, so WAL will fill the disk: ${command} did not take ${wal ?? 'a file'} at ${at === null ? 'an unknown time' : formatUtc(at)}; ${before}`;
  return [{ kind: 'fact', status: 'warning', says, remedy: ARCHIVE_REMEDY }];
}
