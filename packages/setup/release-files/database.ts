// What a database image of a release has of its own: its PostgreSQL, whatever place and major version that has, and what the
// memory of its container is shared out to.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';

export interface ReleasePrograms {
  /** Directory of the PostgreSQL programs. */
  binaries: string;
  major: string;
}

/** The one PostgreSQL below `root`, the root directory of an image: as Debian's packages place it, or as PGDG's for RHEL do. */
export function releasePrograms(root: string): ReleasePrograms {
  const found = [...majorsIn(join(root, 'usr/lib/postgresql'), ''), ...majorsIn(join(root, 'usr'), 'pgsql-')];
  const [programs, ...others] = found;
  if (programs === undefined)
    throw new StackError(
      `This image has no PostgreSQL server, neither in ${join(root, 'usr/lib/postgresql/N/bin')} nor in ${join(root, 'usr/pgsql-N/bin')}.`,
      'build the images anew from the archive of the release: ./scripts/setup.sh ARCHIVE',
    );
  if (others.length > 0)
    throw new StackError(
      `This image has ${found.length} PostgreSQL servers, and nothing says which one the release means: ${found.map(({ binaries }) => binaries).join(', ')}.`,
      'build the images anew from the archive of the release: ./scripts/setup.sh ARCHIVE',
    );
  return programs;
}

function majorsIn(directory: string, prefix: string): ReleasePrograms[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => ({ binaries: join(directory, name, 'bin'), major: name.slice(prefix.length) }))
    .filter(({ binaries }) => existsSync(join(binaries, 'postgres')))
    .toSorted((one, other) => Number(one.major) - Number(other.major));
}

/** How to go on with a cluster of another major version than the image of a release has. */
export function anotherMajor(major: string): (found: string) => string {
  return (found) =>
    `go back to the release that made it (CORE_RELEASE in .env, then docker compose up -d --wait), dump it there with pg_dump of version ${found}, and load it into a new volume under version ${major}; or bring the volume to version ${major} with pg_upgrade, which needs the programs of both`;
}

/** One connection for each 4 MiB: what an idle one comes to. */
const CONNECTIONS = { least: 200, most: 2100, mibEach: 4 } as const;
const BUFFERS_SHARE = 4;
/** What the release starts with. */
const MOST_BUFFERS_MIB = 2560;

/** For management, flows, the tools of an operator, and what PostgreSQL keeps for a superuser. */
const OTHER_CONNECTIONS = 40;
/** Messaging and API have a pool each; retention and plugins take two of the rest. */
const POOLS = 2;
const MAX_POOL = 200;

/** How many connections each pool of a release may have at a server of this memory. */
export function poolSize(memory: string): number {
  return Math.min(MAX_POOL, Math.floor((Number(sharesOf(memory).max_connections) - OTHER_CONNECTIONS) / POOLS));
}

/**
 * Settings for a server that may use `memory` (4g, 6144m). The release's own (2100 connections, 2560MB of buffers) are for a host
 * of its own.
 */
export function sharesOf(memory: string): Record<'max_connections' | 'shared_buffers', string> {
  const mib = Number.parseInt(memory, 10) * (memory.endsWith('g') ? 1024 : 1);
  const { least, most, mibEach } = CONNECTIONS;
  return {
    max_connections: String(Math.min(most, Math.max(least, Math.floor(mib / mibEach)))),
    shared_buffers: `${Math.min(MOST_BUFFERS_MIB, Math.floor(mib / BUFFERS_SHARE))}MB`,
  };
}
