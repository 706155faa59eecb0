// Asks for the right of the core's admin API, and asks to take it away: files in a spool directory,
// each there whole or not at all. A name becomes part of a path only when it can be that of a
// service account.

import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { replaceFile } from '@holdfast/kit/files';
import { isServiceAccountName, nameKey } from '@holdfast/kit/names';
import type { AdminGrants } from '../../devices/port.ts';

/** One certificate, and nothing besides: a key must never get there. */
const CERTIFICATE = /^\s*-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*$/;

/** `directory` is made when it is missing; what it is in must exist. */
export function adminGrantSpool(directory: string): AdminGrants {
  return {
    async give(username, certificatePem) {
      mustBeServiceAccount(username);
      if (!CERTIFICATE.test(certificatePem))
        throw new AppError(
          'invalid',
          `The certificate for the admin right of ${username} is not a single certificate in PEM.`,
        );
      await written(directory, () => replaceFile(join(directory, `${username}.pem`), `${certificatePem.trim()}\n`));
    },

    async take(username) {
      mustBeServiceAccount(username);
      await written(directory, async () => {
        for (const waiting of await waitingFor(directory, username)) await rm(waiting, { force: true });
        await replaceFile(join(directory, `${username}.revoke`), '');
      });
    },
  };
}

/** In every case of the name. */
async function waitingFor(directory: string, username: string): Promise<string[]> {
  try {
    const names = await readdir(directory);
    return names.filter((name) => nameKey(name) === nameKey(`${username}.pem`)).map((name) => join(directory, name));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

function mustBeServiceAccount(username: string): void {
  if (isServiceAccountName(username)) return;
  throw new AppError(
    'invalid',
    `Only service accounts can use the core's admin API, not ${JSON.stringify(username.slice(0, 80))}.`,
  );
}

async function written(directory: string, write: () => Promise<void>): Promise<void> {
  try {
    await mustNotLeadElsewhere(directory);
    await write();
  } catch (error) {
    throw new AppError(
      'unavailable',
      `The admin right cannot be requested in ${directory}: ${messageOf(error)}. Remedy: make the directory writable.`,
      { cause: error },
    );
  }
}

/** Others may write beside it. */
async function mustNotLeadElsewhere(directory: string): Promise<void> {
  const found = await lstat(directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (found?.isDirectory() === false) throw new Error("it isn't a directory; a symbolic link is not followed");
}
