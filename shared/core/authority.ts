// The CA of the core and its revocation list, read from its directory.

import type { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { AppError } from '@holdfast/kit/app-error';
import { fileProblemOf, readBounded } from '@holdfast/kit/files';
import { withTimeout } from '@holdfast/kit/timeout';
import { LARGEST_LIST_BYTES, revocationListHead } from '@holdfast/pki/signed-revocation-list';
import { chainIn } from './files.ts';
import type { CoreAuthority } from './port.ts';

/** A file system that hangs must not hold a download. */
const WITHIN_MS = 3_000;

/** `ca.pem` and `ca.crl` in `certs/files` below the core's data directory. */
export function coreAuthorityFiles(coreDirectory: string, withinMilliseconds = WITHIN_MS): CoreAuthority {
  const place = join(coreDirectory, 'certs', 'files');
  const read = <T>(name: string, work: (path: string) => Promise<T>): Promise<T> =>
    reading(join(place, name), withinMilliseconds, work);
  const authorities = (): Promise<[X509Certificate, ...X509Certificate[]]> => read('ca.pem', authoritiesIn);

  return {
    async certificate() {
      const chain = await authorities();
      return {
        chainPem: chain.map(String),
        fingerprint: chain[0].fingerprint256,
        expiresAt: chain[0].validToDate.toISOString(),
      };
    },

    async revocationList() {
      const cas = await authorities();
      return read('ca.crl', async (path) => {
        const list = revocationListHead(await readBounded(path, LARGEST_LIST_BYTES));
        return {
          pem: list.pem(),
          serials: list.serials(),
          thisUpdate: list.thisUpdate.toISOString(),
          nextUpdate: list.nextUpdate?.toISOString() ?? null,
          ours: cas.some((ca) => list.isSignedBy(ca)),
        };
      });
    },
  };
}

async function authoritiesIn(path: string): Promise<[X509Certificate, ...X509Certificate[]]> {
  const [first, ...others] = await chainIn(path);
  if (first?.ca !== true) throw new Error('no CA certificate');
  return [first, ...others];
}

async function reading<T>(path: string, milliseconds: number, work: (path: string) => Promise<T>): Promise<T> {
  const late = (): AppError =>
    new AppError('unavailable', `${path} could not be read within ${milliseconds / 1000} s: the disk does not answer.`);
  try {
    return await withTimeout(milliseconds, late, work(path));
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('unavailable', `${path} ${fileProblemOf(error)}.`, { cause: error });
  }
}
