// Stores private keys of certificates that Holdfast made: one file each, named by the hash,
// readable only by the owner from its first byte. A file is complete or absent.

import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError, codeOf } from '@holdfast/kit/app-error';
import { FileProblem, fileProblemOf, PEM_CERTIFICATE, readBounded } from '@holdfast/kit/files';
import type { ClientKeys, KeptKey } from '../../core/devices/port.ts';

const HASH = /^[0-9A-F]{2}(?::[0-9A-F]{2}){31}$/;
const PEM_KEY = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/;
const UNFINISHED = /^\.[0-9a-f]{64}\.[0-9a-f-]{36}\.new$/;
/** Nobody writes so long on a few kilobytes: a process has died over it. */
const LEFT_BEHIND_MS = 60_000;
const LARGEST_BYTES = 256 * 1024;

/** In that directory, which is made with its parent when it is missing. */
export function clientKeyFiles(directory: string): ClientKeys {
  const fileOf = (hash: string): string => join(directory, `${bareHash(hash)}.pem`);

  return {
    async keep(hash, key) {
      const file = fileOf(hash);
      await reported(`The key of ${hash} was not stored: ${directory}`, async () => {
        await ensureOwn(directory);
        await removeLeftBehind(directory);
        await writeWhole(directory, file, textOf(key));
      });
    },

    async read(hash) {
      const file = fileOf(hash);
      return reported(file, async () => {
        await mustBeOwn(directory);
        return contentOf((await readBounded(file, LARGEST_BYTES, { ownOnly: true })).toString('latin1'));
      }).catch(unlessMissing);
    },

    async kept(hashes) {
      const known = hashes.filter((hash) => HASH.test(hash));
      if (known.length === 0) return [];
      return reported(directory, async () => {
        await mustBeOwn(directory);
        const there = await Promise.all(known.map((hash) => isFile(fileOf(hash))));
        return known.filter((_, at) => there[at]);
      })
        .catch(unlessMissing)
        .then((found) => found ?? []);
    },

    async remove(hash) {
      const file = fileOf(hash);
      await reported(file, async () => {
        await mustBeOwn(directory);
        await rm(file, { force: true });
      }).catch(unlessMissing);
    },
  };
}

/** Before any path is made of it. */
function bareHash(hash: string): string {
  if (!HASH.test(hash)) throw new AppError('invalid', "This isn't a SHA-256 hash of a certificate (AA:BB:...).");
  return hash.replaceAll(':', '').toLowerCase();
}

/**
 * Says of whom the problem is; what is missing stays as it is, for whoever knows what that means.
 */
async function reported<T>(subject: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') throw new Missing(`${subject} is missing.`, error);
    throw new AppError('unavailable', `${subject} ${fileProblemOf(error)}.`, { cause: error });
  }
}

class Missing extends AppError {
  constructor(message: string, cause: unknown) {
    super('unavailable', message, { cause });
  }
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof Missing)) throw error;
  return undefined;
}

async function ensureOwn(directory: string): Promise<void> {
  for (const path of [dirname(directory), directory])
    await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error;
    });
  const { mode } = await mustBeOwn(directory);
  if ((mode & 0o077) !== 0) await chmod(directory, 0o700);
}

/** Somebody who may write beside it must not send us elsewhere. */
async function mustBeOwn(directory: string): Promise<{ mode: number }> {
  const found = await lstat(directory);
  if (!found.isDirectory()) throw new FileProblem('is not a directory; a symbolic link is not followed');
  return found;
}

async function removeLeftBehind(directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => UNFINISHED.test(name));
  for (const name of names) {
    const file = join(directory, name);
    const found = await lstat(file).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > LEFT_BEHIND_MS) await rm(file, { force: true });
  }
}

async function writeWhole(directory: string, file: string, text: string): Promise<void> {
  const name = file.slice(directory.length + 1).replace(/\.pem$/, '');
  const beside = join(directory, `.${name}.${randomUUID()}.new`);
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const handle = await open(beside, flags, 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(beside, file);
    await syncDirectory(directory);
  } catch (error) {
    await rm(beside, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Else the name could be lost with the power, though the content is there. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function isFile(file: string): Promise<boolean> {
  return lstat(file).then(
    (found) => found.isFile(),
    () => false,
  );
}

function textOf({ keyPem, certificatePem, chainPem }: KeptKey): string {
  return [keyPem, certificatePem, ...chainPem].map((pem) => `${pem.trim()}\n`).join('');
}

function contentOf(text: string): KeptKey {
  const [keyPem] = PEM_KEY.exec(text) ?? [];
  const [certificatePem, ...chainPem] = text.match(PEM_CERTIFICATE) ?? [];
  if (keyPem === undefined || certificatePem === undefined) throw new FileProblem('contains no key with a certificate');
  return {
    keyPem: `${keyPem}\n`,
    certificatePem: `${certificatePem}\n`,
    chainPem: chainPem.map((pem) => `${pem}\n`),
  };
}
