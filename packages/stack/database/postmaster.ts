// Starts the PostgreSQL server, and checks whether it is ready.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '@holdfast/kit/files';
import { type DatabaseTuning, isStock } from '../../../shared/settings/tuning.ts';
import type { Layout } from '../process/layout.ts';
import type { ProcessLog } from '../process/process-log.ts';
import { type Cluster, programEnvironment } from './cluster.ts';
import { CORE_DATABASE, CORE_FLOWS } from './roles.ts';

/** Which addresses may connect. */
export interface Access {
  /** Addresses that may use passwords, in the form of pg_hba.conf. */
  from: '127.0.0.1/32' | 'all';
  /**
   * The only address of the flow engine's role, and reserved for it. Without it that role can't
   * connect.
   */
  flowsFrom?: string;
}

/** In order: the first line that matches applies. */
function accessRules({ from, flowsFrom }: Access): string {
  const lines = [
    "# Written by Holdfast at every start. The superuser can't log in: use single-user mode while the stack is stopped.",
    'host all postgres all reject',
    ...(flowsFrom === undefined ? [] : [`host ${CORE_DATABASE} ${CORE_FLOWS} ${flowsFrom} scram-sha-256`]),
    `host all ${CORE_FLOWS} all reject`,
    ...(flowsFrom === undefined || flowsFrom === from ? [] : [`host all all ${flowsFrom} reject`]),
    `host all all ${from} scram-sha-256`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Outside the cluster: root must never write into a directory of the database user. */
export function hbaFile(layout: Layout): string {
  return join(layout.root, 'pg_hba.conf');
}

export function writeAccessRules(file: string, access: Access): void {
  writeFileAtomically(file, accessRules(access), 0o644);
}

/** Start options of a server, besides its directory. */
export interface ServerOptions {
  listen: string;
  port: number;
  hbaFile: string;
  tuning: DatabaseTuning;
  /** More settings, by name. */
  more?: Readonly<Record<string, string>>;
}

/** The command line of a server: every setting that differs from PostgreSQL's default. */
export function serverArguments(pgdata: string, { listen, port, hbaFile, tuning, more }: ServerOptions): string[] {
  const flags = {
    listen_addresses: listen,
    port: String(port),
    unix_socket_directories: '',
    logging_collector: 'off',
    log_destination: 'stderr',
    log_line_prefix: '%m [%p] %q%u@%d ',
    log_min_error_statement: 'panic',
    archive_mode: 'off',
    hba_file: hbaFile,
    autovacuum_vacuum_scale_factor: String(tuning.scaleFactor),
    autovacuum_vacuum_cost_limit: String(tuning.costLimit),
    maintenance_work_mem: tuning.maintenanceWorkMem.replaceAll(' ', ''),
    // Retention can leave a tenth of a table dead within a minute, autovacuum's default interval.
    // With the stock tuning this stays at PostgreSQL's default, too.
    ...(isStock(tuning) ? {} : { autovacuum_naptime: '15s' }),
    ...more,
  };
  return ['-D', pgdata, ...Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** Starts the server detached from our terminal. Its output is appended to `log`. */
export function startPostmaster(cluster: Cluster, options: ServerOptions, log: ProcessLog): ChildProcess {
  const args = serverArguments(cluster.pgdata, options);
  const { program, args: all, ...identity } = cluster.account.command(join(cluster.binaries, 'postgres'), args);
  const spawning = { ...identity, cwd: '/', env: programEnvironment(), detached: true } as const;
  return log.open((descriptor) => spawn(program, all, { ...spawning, stdio: ['ignore', descriptor, descriptor] }));
}

/** True if exactly this server has written that it accepts connections. */
export function isReady(cluster: Cluster, child: ChildProcess): boolean {
  const lines = readFileSync(join(cluster.pgdata, 'postmaster.pid'), 'utf8').split('\n');
  return Number(lines[0]) === child.pid && lines[7]?.trim() === 'ready';
}
