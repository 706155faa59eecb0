// The running PostgreSQL server: its start flags, and how one sees that it answers.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '@holdfast/kit/files';
import { type DatabaseTuning, isStock } from '../../../shared/settings/tuning.ts';
import type { Layout } from '../process/layout.ts';
import type { ProcessLog } from '../process/process-log.ts';
import { type Cluster, programEnvironment } from './cluster.ts';
import { CORE_DATABASE, CORE_FLOWS } from './roles.ts';

/** Who may sign in from where. */
export interface Access {
  /** Of whom passwords are taken, as pg_hba.conf has it. */
  from: '127.0.0.1/32' | 'all';
  /** From where the flow engine's role comes, and where nobody else comes from; without it that role comes from nowhere. */
  flowsFrom?: string;
}

/** The first line that fits counts. */
function accessRules({ from, flowsFrom }: Access): string {
  const lines = [
    '# Written by Holdfast at every start. The superuser cannot log in; use single-user mode while the stack is stopped.',
    'host all postgres all reject',
    ...(flowsFrom === undefined ? [] : [`host ${CORE_DATABASE} ${CORE_FLOWS} ${flowsFrom} scram-sha-256`]),
    `host all ${CORE_FLOWS} all reject`,
    ...(flowsFrom === undefined || flowsFrom === from ? [] : [`host all all ${flowsFrom} reject`]),
    `host all all ${from} scram-sha-256`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Our access rules lie outside the cluster: as root, nothing is ever written into a directory of the database's user. */
export function hbaFile(layout: Layout): string {
  return join(layout.root, 'pg_hba.conf');
}

export function writeAccessRules(file: string, access: Access): void {
  writeFileAtomically(file, accessRules(access), 0o644);
}

/** What a server is started with, besides its directory. */
export interface ServerOptions {
  listen: string;
  port: number;
  hbaFile: string;
  tuning: DatabaseTuning;
  /** More settings, by name. */
  more?: Readonly<Record<string, string>>;
}

/** The command line of a server: everything that is not as PostgreSQL ships it. */
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
    // Retention can leave a tenth of a table dead within a minute, which is how long autovacuum waits by default. Whoever asks for
    // the stock values gets PostgreSQL's own behavior, this included.
    ...(isStock(tuning) ? {} : { autovacuum_naptime: '15s' }),
    ...more,
  };
  return ['-D', pgdata, ...Object.entries(flags).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** Starts the server detached from our terminal; its output is appended to `log`. */
export function startPostmaster(cluster: Cluster, options: ServerOptions, log: ProcessLog): ChildProcess {
  const args = serverArguments(cluster.pgdata, options);
  const { program, args: all, ...identity } = cluster.account.command(join(cluster.binaries, 'postgres'), args);
  const spawning = { ...identity, cwd: '/', env: programEnvironment(), detached: true } as const;
  return log.open((descriptor) => spawn(program, all, { ...spawning, stdio: ['ignore', descriptor, descriptor] }));
}

/** True when exactly this server has written that it accepts connections. */
export function isReady(cluster: Cluster, child: ChildProcess): boolean {
  const lines = readFileSync(join(cluster.pgdata, 'postmaster.pid'), 'utf8').split('\n');
  return Number(lines[0]) === child.pid && lines[7]?.trim() === 'ready';
}
