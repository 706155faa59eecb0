// Grants service accounts the right of the admin API through the release's own user manager. The
// running server keeps its users in memory and would overwrite a changed file. Verifies the file
// afterwards.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type AdminGrantOptions, AdminGrants } from '@holdfast/core/admin/admin-grants';
import { readUsersDocument, type UsersDocument, withoutEntry } from '@holdfast/core/admin/users-document';
import { writeFileAtomically } from '@holdfast/kit/files';
import type { Log } from '@holdfast/kit/log';
import { nameKey } from '@holdfast/kit/names';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { readRevocationList } from '@holdfast/pki/revocation-list';

const USERS_FILE = 'UserAuthenticationFile.xml';
const USERS_FILE_MODE = 0o640;
const LOOK_EVERY_MS = 1_000;
/**
 * The user manager starts a JVM, so failures must not be retried every second for long. A server
 * that has just started refuses it for a moment.
 */
const FIRST_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 30_000;
const MAX_REPORTED = 400;
const MAX_OUTPUT = 32_768;
/**
 * After an exception, the user manager prints it and hangs, because its grid threads keep running.
 */
const FORCED = /^(?:Exception in thread .*|(?:[\w$]+\.)+\w*(?:Exception|Error)\b.*)$/m;
const ENDS_AFTER_FORCED_MS = 3_000;

export interface RightsOptions {
  home: string;
  environment: NodeJS.ProcessEnv;
  /** Looks up the table of certificates. */
  byHash: AdminGrantOptions['certificates']['byHash'];
  log: Log;
  signal: AbortSignal;
  withinMs?: number;
  lookEveryMs?: number;
  pauseMs?: (failuresInRow: number) => number;
}

/** 2 s, 4 s, 8 s, up to 30 s. */
export function grantPauseMs(failuresInRow: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (failuresInRow - 1), MAX_PAUSE_MS);
}

/** Processes the spool until `signal` aborts, one request at a time. */
export async function carryOutGrants(options: RightsOptions): Promise<void> {
  const { home, log, byHash, signal, lookEveryMs = LOOK_EVERY_MS, pauseMs = grantPauseMs } = options;
  const files = certificateFiles(home);
  let failed = false;
  let failuresInRow = 0;
  const users = usersByManager(options);
  const noticed = async (work: Promise<void>): Promise<void> => {
    await work.catch((error: unknown) => {
      failed = true;
      throw error;
    });
  };
  const grants = new AdminGrants({
    directory: join(home, 'admin-grants'),
    authority: {
      get chain() {
        return [readFileSync(files.ca, 'utf8')];
      },
    },
    certificates: { byHash },
    users: {
      grant: (entry) => noticed(users.grant(entry)),
      cancel: (identifier) => noticed(users.cancel(identifier)),
    },
    isRevoked: (serial) => isInList(files.revocationList, serial),
    log,
    now: () => new Date(),
  });
  while (!signal.aborted) {
    failed = false;
    await grants.look();
    failuresInRow = failed ? failuresInRow + 1 : 0;
    const restMs = failed ? pauseMs(failuresInRow) : lookEveryMs;
    await delay(restMs, undefined, { signal }).catch(() => undefined);
  }
}

interface UsersByManager {
  grant(entry: { identifier: string; fingerprint: string; certificate: string }): Promise<void>;
  cancel(identifier: string): Promise<void>;
}

/** Each method rejects if the file doesn't have the change afterwards. */
export function usersByManager(
  options: Pick<RightsOptions, 'home' | 'environment' | 'signal' | 'withinMs'>,
): UsersByManager {
  const path = join(options.home, USERS_FILE);
  const read = (): UsersDocument => readUsersDocument(readFileSync(path, 'utf8'));
  const entriesOf = (identifier: string) =>
    read().entries.filter((each) => nameKey(each.identifier) === nameKey(identifier));
  const isGiven = (identifier: string, fingerprint: string): boolean =>
    entriesOf(identifier).some((each) => each.role === 'ROLE_ADMIN' && each.fingerprint === fingerprint.toUpperCase());

  return {
    async grant({ identifier, fingerprint, certificate }) {
      if (isGiven(identifier, fingerprint)) return;
      const directory = mkdtempSync(join(tmpdir(), 'holdfast-right-'));
      try {
        const file = join(directory, 'certificate.pem');
        writeFileSync(file, certificate, { mode: 0o600 });
        const reply = await userManager(['certmod', '-A', file], options);
        if (!isGiven(identifier, fingerprint)) throw notDone(reply);
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    },

    async cancel(identifier) {
      for (const entry of entriesOf(identifier)) {
        const output = await userManager(['usermod', '-D', entry.identifier], options);
        if (output.code !== 0) throw notDone(output);
      }
      // Some releases remove the account from memory at once, but from the file only with the next
      // change.
      const text = withoutEntry(read(), identifier);
      if (text !== undefined) writeFileAtomically(path, text, USERS_FILE_MODE);
    },
  };
}

interface Report {
  code: number | string;
  words: string;
}

function notDone({ code, words }: Report): Error {
  const end = FORCED.exec(words)?.[0] ?? words.trim().split('\n').at(-1) ?? '';
  return new Error(`the user manager of the release exited with ${code}: ${end.slice(0, MAX_REPORTED) || 'no output'}`);
}

async function userManager(
  args: readonly string[],
  {
    home,
    environment,
    signal,
    withinMs = 120_000,
  }: Pick<RightsOptions, 'home' | 'environment' | 'signal' | 'withinMs'>,
): Promise<Report> {
  const child = spawn('java', ['-Xmx256m', '-jar', 'utils/UserManager.jar', ...args], {
    cwd: home,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    killSignal: 'SIGKILL',
    signal: AbortSignal.any([signal, AbortSignal.timeout(withinMs)]),
  });
  let words = '';
  let ending: NodeJS.Timeout | undefined;
  const hear = (chunk: Buffer): void => {
    words = (words + chunk.toString('utf8')).slice(-MAX_OUTPUT);
    if (FORCED.test(words)) ending ??= setTimeout(() => child.kill('SIGKILL'), ENDS_AFTER_FORCED_MS);
  };
  for (const stream of [child.stdout, child.stderr]) stream.on('data', hear);
  return new Promise((resolve, reject) => {
    child.once('error', (error) => {
      if (error.name !== 'AbortError') reject(error);
    });
    child.once('close', (code, killed) => {
      clearTimeout(ending);
      resolve({ code: code ?? `signal ${killed}`, words });
    });
  });
}

/** False if the list can't be read: the table of certificates is checked, too. */
function isInList(path: string, serial: string): boolean {
  try {
    const base64 = /-----BEGIN X509 CRL-----([^-]+)-----END/.exec(readFileSync(path, 'latin1'))?.[1] ?? '';
    const list = readRevocationList(Uint8Array.from(Buffer.from(base64, 'base64')));
    return list.revoked().some((each) => each.serial === serial);
  } catch {
    return false;
  }
}
