// Chooses the user that runs PostgreSQL, which refuses to run as root. Root uses an unprivileged
// account. If a directory on the path is closed to it, the account gets the capability
// dac_read_search (reading and searching, not writing). access(2), which initdb uses to find its
// sister programs, honors that only with the secure bit no_setuid_fixup.

import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';

export interface Account {
  /** Command line and user to run a program as this account. */
  command(program: string, args: string[]): { program: string; args: string[]; uid?: number; gid?: number };
  /** Makes the account the owner of a file or directory. */
  give(path: string): void;
}

interface Candidate {
  uid: number;
  gid: number;
}

const NOBODY = 65534;

/**
 * The account for a cluster at `pgdata`. Checked: it can run `initdb` and access `workplace`.
 * Throws a StackError.
 */
export function databaseAccount(pgdata: string, initdb: string, workplace: string): Account {
  if (process.getuid?.() !== 0) {
    refuseForeignOwner(pgdata);
    return { command: (name, args) => ({ program: name, args }), give: () => undefined };
  }
  const candidate = candidateFor(pgdata);
  const give = (path: string): void => chownSync(path, candidate.uid, candidate.gid);
  const accounts: Account[] = [
    { command: (name, args) => ({ program: name, args, ...candidate }), give },
    { command: (name, args) => ({ program: 'setpriv', args: [...setprivArguments(candidate), name, ...args] }), give },
  ];
  const complaints = new Set<string>();
  for (const account of accounts) {
    const complaint = dryRunError(account, initdb, workplace);
    if (complaint === undefined) return account;
    complaints.add(complaint);
  }
  const message = [...complaints].join(', ');
  const closed = closedDirectory(initdb, workplace);
  if (closed === undefined) {
    throw new StackError(
      `Couldn't run PostgreSQL as the unprivileged user ${candidate.uid}: ${message}`,
      'remove node_modules and start again, which reinstalls the packages. Or start Holdfast as a regular user',
    );
  }
  throw new StackError(
    `PostgreSQL runs as the unprivileged user ${candidate.uid}, which can't access ${closed}: ${message}`,
    `run chmod o+x ${closed}, start Holdfast as a regular user, or use another directory`,
  );
}

function refuseForeignOwner(pgdata: string): void {
  const owner = existsSync(pgdata) ? statSync(pgdata).uid : undefined;
  if (owner === undefined || owner === process.getuid?.()) return;
  throw new StackError(
    `${pgdata} belongs to user ${owner}, but you are user ${process.getuid?.()}.`,
    'start as the owner or as root, or use another directory with --data DIR',
  );
}

function candidateFor(pgdata: string): Candidate {
  if (existsSync(pgdata)) {
    const { uid, gid } = statSync(pgdata);
    if (uid === 0) {
      throw new StackError(
        `${pgdata} belongs to root, and PostgreSQL refuses to run as root.`,
        `change its owner: chown -R ${NOBODY}:${NOBODY} ${pgdata}`,
      );
    }
    return { uid, gid };
  }
  const entry = /^[^:\n]*:[^:\n]*:65534:(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'));
  if (entry === null) {
    throw new StackError(
      'PostgreSQL refuses to run as root, and the unprivileged user 65534 does not exist.',
      'start Holdfast as a regular user',
    );
  }
  return { uid: NOBODY, gid: Number(entry[1]) };
}

function setprivArguments({ uid, gid }: Candidate): string[] {
  const capability = '+dac_read_search';
  return [
    '--securebits',
    '+no_setuid_fixup',
    '--reuid',
    String(uid),
    '--regid',
    String(gid),
    '--clear-groups',
    '--inh-caps',
    capability,
    '--ambient-caps',
    capability,
  ];
}

/**
 * The reason why the account can't run PostgreSQL, found by a dry run of initdb; undefined if it
 * can.
 */
function dryRunError(account: Account, initdb: string, workplace: string): string | undefined {
  const attempt = 'cd "$1" && exec "$2" -s -D "$1" -U postgres';
  const { program, args, ...identity } = account.command('/bin/sh', ['-c', attempt, 'sh', workplace, initdb]);
  const { status, signal, stderr, error } = spawnSync(program, args, {
    ...identity,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (status === 0) return undefined;
  return error?.message ?? (stderr.trim().split('\n')[0] || `exit code ${status ?? signal}`);
}

/** The first directory on the paths that other users can't enter. */
function closedDirectory(...paths: string[]): string | undefined {
  for (const path of paths) {
    const chain: string[] = [];
    for (let each = path; each !== dirname(each); each = dirname(each)) chain.unshift(each);
    const closed = chain.find(
      (each) => existsSync(each) && statSync(each).isDirectory() && (statSync(each).mode & 0o001) === 0,
    );
    if (closed !== undefined) return closed;
  }
  return undefined;
}
