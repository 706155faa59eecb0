// Checks settings of the core's database that lose data or stop writes, each with the command that
// resets it.

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
    because: 'a crash can lose the last confirmed writes',
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
    ...passwordFindings(server.md5_roles ?? []),
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
      says: 'the database accepts no writes: it is a standby',
      remedy:
        'Point CORE_DATABASE_URL to the primary. If the primary is gone for good, promote this one as a superuser: SELECT pg_promote();',
    });
  if (isOn(value))
    facts.push({
      kind: 'fact',
      status: 'critical',
      says: `the database accepts no writes: ${name} is ${value} (${formatOrigin(origin)})`,
      // The setting also applies to a session that began under it.
      remedy: `SET ${name} = off; ${takenBack(name, origin, { wanted: 'off' })}`,
    });
  return facts;
}

/** Our access rules ask for scram-sha-256, as those of a TAK Server 5.8 do. */
function passwordFindings(roles: readonly string[]): Fact[] {
  if (roles.length === 0) return [];
  const says = `${roles.length === 1 ? 'the role' : 'the roles'} ${roles.join(', ')} can't sign in with scram-sha-256: the stored password is md5`;
  const remedy =
    "Restart the database: each start of core-database stores the passwords of its own roles again. For another role, set its password again as a superuser: SET password_encryption = 'scram-sha-256'; then \\password ROLE in psql.";
  return [{ kind: 'fact', status: 'warning', says, remedy }];
}

function restartFindings(names: readonly string[]): Fact[] {
  if (names.length === 0) return [];
  const says = `${names.join(', ')} changed in the configuration and needs a restart of the server`;
  const remedy =
    'Restart the server at a quiet time (scripts/stop.sh and scripts/start.sh, with containers docker compose restart core-database), or undo the change in its file.';
  return [{ kind: 'fact', status: 'note', says, remedy }];
}

/** Tells if the database files outlive the container: only those on a volume or a bind mount do. */
export interface VolumeData {
  volume: 'named volume' | 'anonymous volume' | 'bind mount' | 'none' | 'unknown' | 'not applicable';
  /** Why it is unknown, or where the files are; null if neither applies. */
  volume_detail: string | null;
  /** Null if it was not found. */
  volume_container: string | null;
}

const NOT_APPLICABLE: VolumeData = { volume: 'not applicable', volume_detail: null, volume_container: null };
/** The name that the engine gives to an unnamed volume. */
const ANONYMOUS = /^[0-9a-f]{64}$/;

export async function readVolume(
  { containers, wanted }: Pick<Monitored, 'containers' | 'wanted'>,
  directory: string | null,
): Promise<VolumeData> {
  if (containers === undefined) return NOT_APPLICABLE;
  const host = wanted.databaseHost;
  if (host === undefined) return unknown('CORE_DATABASE_URL names no host');
  if (directory === null) return unknown('the role may not read data_directory (GRANT pg_monitor)');
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
  const remedy = `Save it first: ${dump}; then give its service volumes: ["database:${directory}"], recreate it, and load the dump with pg_restore.`;
  if (volume === 'none')
    return [
      {
        kind: 'fact',
        status: 'critical',
        says: `the database files (${directory}) are in the container ${container} itself: docker compose down deletes them`,
        remedy,
      },
    ];
  if (volume !== 'anonymous volume') return [];
  return [
    {
      kind: 'fact',
      status: 'warning',
      says: `the database files are on an unnamed volume (${detail?.slice(0, 12)}): docker compose down -v deletes it, and a new container gets an empty one`,
      remedy,
    },
  ];
}

/** More WAL than this multiple of `max_wal_size` is kept by something that does not consume it. */
const MUCH_WAL = 3;

type WalSize = Pick<DatabaseSize, 'wal_bytes' | 'max_wal_bytes'>;

/** Findings on what keeps WAL and if its archive works, each with the command that helps. */
export function walFindings(size: WalSize, server: ServerFacts): Fact[] {
  return [...archiveFindings(server), ...sizeFindings(size, server)];
}

function sizeFindings({ wal_bytes: bytes, max_wal_bytes: limit }: WalSize, server: ServerFacts): Fact[] {
  if (bytes === null)
    return [
      {
        kind: 'fact',
        status: 'note',
        says: `the size of WAL is unknown; GRANT pg_monitor to the role ${server.role}`,
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
  if (archiveTakesNothing(server)) return { why: 'its archive accepts none', remedy: ARCHIVE_REMEDY };
  if (server.wal_keep_bytes > limit)
    return {
      why: `wal_keep_size keeps ${formatBytes(server.wal_keep_bytes)}`,
      remedy:
        'If no standby needs it, reset it: ALTER SYSTEM RESET wal_keep_size; SELECT pg_reload_conf(); CHECKPOINT;',
    };
  return {
    why: 'no slot, archive or wal_keep_size keeps it, so a checkpoint is late or a lot was written at once',
    remedy: 'Run as a superuser: CHECKPOINT; and if WAL stays, look for slow disks in the database log.',
  };
}

function keptForSlot({ name, active, retained_bytes }: ReplicationSlot): { why: string; remedy: string } {
  const drop = `SELECT pg_drop_replication_slot(${name});`;
  return {
    why: `the replication slot ${name}, which ${active ? 'is behind' : 'is unused'}, keeps ${formatBytes(retained_bytes ?? 0)}`,
    remedy: active
      ? `Find out why the standby or reader of the slot ${name} is slow. If it is not needed, stop it, then ${drop}`
      : `If nothing will use the slot again, drop it: ${drop} CHECKPOINT; or start its reader.`,
  };
}

const ARCHIVE_REMEDY =
  "Fix what archive_command needs (SHOW archive_command;). If the archive is unused, run in psql: ALTER SYSTEM SET archive_command = '/bin/true'; SELECT pg_reload_conf(); Then run ALTER SYSTEM SET archive_mode = 'off'; and restart the server.";

function archiveTakesNothing({ archive: { mode, command, failing } }: ServerFacts): boolean {
  return mode !== 'off' && (failing || command === '');
}

function archiveFindings(server: ServerFacts): Fact[] {
  if (!archiveTakesNothing(server)) return [];
  const { mode, command, failed_wal: wal, failed_at: at, archived_at: last } = server.archive;
  if (command === '') {
    const says = `WAL archiving has no command (archive_mode is ${mode}), so WAL will fill the disk`;
    const back = takenBack('archive_mode', server.settings.archive_mode.origin, { wanted: 'off' });
    const remedy = `Set archive_command, or if no archive is used: ${back} Then restart the server.`;
    return [{ kind: 'fact', status: 'warning', says, remedy }];
  }
  const before = last === null ? 'nothing was ever archived' : `the last success was at ${formatUtc(last)}`;
  const says = `WAL archiving fails, so WAL will fill the disk: ${command} failed for ${wal ?? 'a file'} at ${at === null ? 'an unknown time' : formatUtc(at)}; ${before}`;
  return [{ kind: 'fact', status: 'warning', says, remedy: ARCHIVE_REMEDY }];
}
