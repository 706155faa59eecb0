// Whether the files of the core's database outlive its container: only what lies on a volume or a bind mount does.

import type { Fact } from '../domain/evaluate.ts';
import { messageOf } from '../domain/thrown.ts';
import type { Container, ContainerMount } from '../ports/containers.ts';
import type { Monitored } from '../ports/monitored.ts';
import type { ServerFacts } from '../ports/server-facts.ts';

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
