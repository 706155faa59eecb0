// The user that runs PostgreSQL. It refuses to run as root: then an unprivileged account is taken, and where a
// directory on the way is closed to that account, it is given the one capability that passes (reading and searching, not
// writing). That counts in access(2), by which initdb looks for its sister programs, only with the secure bit
// no_setuid_fixup.

import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';

export interface Account {
  /** Command line and identity under which a program runs as this account. */
  command(program: string, args: string[]): { program: string; args: string[]; uid?: number; gid?: number };
  /** Gives a file or directory to the account. */
  give(path: string): void;
}

interface Candidate {
  uid: number;
  gid: number;
}

const NOBODY = 65534;

/** The account for a cluster at `pgdata`, proven to run `initdb` and to reach `workplace`. */
export function databaseAccount(pgdata: string, initdb: string, workplace: string): Account {
  if (process.getuid?.() !== 0) {
    refuseForeignOwner(pgdata);
    return { command: (name, args) => ({ program: name, args }), give: () => undefined };
  }
  const candidate = candidateFor(pgdata);
  const give = (path: string): void => chownSync(path, candidate.uid, candidate.gid);
  const accounts: Account[] = [
    { command: (name, args) => ({ program: name, args, ...candidate }), give },
    { command: (name, args) => ({ program: 'setpriv', args: [...passingEverywhere(candidate), name, ...args] }), give },
  ];
  const complaints = new Set<string>();
  for (const account of accounts) {
    const complaint = complaintOf(account, initdb, workplace);
    if (complaint === undefined) return account;
    complaints.add(complaint);
  }
  const message = [...complaints].join('; ');
  const closed = closedDirectory(initdb, workplace);
  if (closed === undefined) {
    throw new StackError(
      `PostgreSQL does not run as the unprivileged user ${candidate.uid}: ${message}`,
      'remove node_modules and start again: the packages are then installed anew; or start Holdfast as an ordinary user',
    );
  }
  throw new StackError(
    `PostgreSQL runs as the unprivileged user ${candidate.uid}, which cannot reach ${closed}: ${message}`,
    `open it with: chmod o+x ${closed}; or start Holdfast as an ordinary user; or put the directory elsewhere`,
  );
}

function refuseForeignOwner(pgdata: string): void {
  const owner = existsSync(pgdata) ? statSync(pgdata).uid : undefined;
  if (owner === undefined || owner === process.getuid?.()) return;
  throw new StackError(
    `${pgdata} belongs to user ${owner}, this start runs as user ${process.getuid?.()}.`,
    'start as the user (or as root) that made it, or use another directory with --data DIR',
  );
}

function candidateFor(pgdata: string): Candidate {
  if (existsSync(pgdata)) {
    const { uid, gid } = statSync(pgdata);
    if (uid === 0) {
      throw new StackError(
        `${pgdata} belongs to root, and PostgreSQL refuses to run as root.`,
        `give it away with: chown -R ${NOBODY}:${NOBODY} ${pgdata}`,
      );
    }
    return { uid, gid };
  }
  const entry = /^[^:\n]*:[^:\n]*:65534:(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8'));
  if (entry === null) {
    throw new StackError(
      'PostgreSQL refuses to run as root, and there is no user 65534 (nobody) to run it.',
      'start Holdfast as an ordinary user',
    );
  }
  return { uid: NOBODY, gid: Number(entry[1]) };
}

function passingEverywhere({ uid, gid }: Candidate): string[] {
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

/** What stands in the way, by the program that is the most particular about it: initdb, which only shows what it would do. */
function complaintOf(account: Account, initdb: string, workplace: string): string | undefined {
  const attempt = 'cd "$1" && exec "$2" -s -D "$1" -U postgres';
  const { program, args, ...identity } = account.command('/bin/sh', ['-c', attempt, 'sh', workplace, initdb]);
  const { status, signal, stderr, error } = spawnSync(program, args, {
    ...identity,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  if (status === 0) return undefined;
  return error?.message ?? (stderr.trim().split('\n')[0] || `it ended with ${status ?? signal}`);
}

/** The first directory on the way down that others may not pass. */
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
