// Reads the certificate files of the core from its directory: only regular files, limited in size,
// and never a key.

import { X509Certificate } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { fileProblemOf, LARGEST_CERTIFICATE_BYTES, PEM_CERTIFICATE, readBounded } from '@holdfast/kit/files';
import { withTimeout } from '@holdfast/kit/timeout';
import { LARGEST_LIST_BYTES, revocationListHead } from '@holdfast/pki/signed-revocation-list';
import type {
  CertificateFile,
  CertificateKind,
  CoreAuthority,
  CoreCertificates,
  CoreFiles,
  RevocationListFile,
} from './port.ts';

const CA = 'ca.pem';
const REVOCATION_LIST = 'ca.crl';
const ALWAYS: readonly [string, CertificateKind][] = [
  [CA, 'ca'],
  ['takserver.pem', 'server'],
  ['svc_api.pem', 'service'],
];
/** A release also writes `<name>-trusted.pem`, the same certificate in another form. */
const OF_SERVICE = /^svc_(?!.*-trusted\.pem$).*\.pem$/;
const MAX_SERVICES = 200;

/**
 * The files in `certs/files` below the core's data directory. Concurrent callers share one read: a
 * file system that hangs holds one thread.
 */
export function coreFiles(coreDirectory: string): CoreFiles {
  const directory = join(coreDirectory, 'certs', 'files');
  let running: Promise<CoreCertificates> | undefined;

  return {
    certificates: () => (running ??= read(directory).finally(() => (running = undefined))),
  };
}

async function read(directory: string): Promise<CoreCertificates> {
  const authorities = await chainIn(join(directory, CA)).catch(() => []);
  const certificates: CertificateFile[] = [];
  for (const [name, kind] of [...ALWAYS, ...(await otherServices(directory))])
    certificates.push(await certificateFile(directory, name, kind, authorities));
  return { directory, certificates, revocationList: await revocationList(directory, authorities) };
}

/** Empty when there is no directory: then the required files are reported as missing. */
async function otherServices(directory: string): Promise<[string, CertificateKind][]> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw new Error(`${directory} cannot be listed (${codeOf(error) ?? messageOf(error)})`, { cause: error });
  });
  const known = new Set(ALWAYS.map(([name]) => name));
  const others = names.filter((name) => OF_SERVICE.test(name) && !known.has(name)).toSorted();
  if (others.length > MAX_SERVICES)
    throw new Error(
      `${directory} contains ${others.length} service certificates; more than ${MAX_SERVICES} are not read`,
    );
  return others.map((name) => [name, 'service']);
}

async function certificateFile(
  directory: string,
  name: string,
  kind: CertificateKind,
  authorities: readonly X509Certificate[],
): Promise<CertificateFile> {
  try {
    const chain = await chainIn(join(directory, name));
    const first = chain[0];
    if (first === undefined) return { name, kind, problem: 'contains no certificate' };
    if (kind === 'ca' && !first.ca) return { name, kind, problem: 'contains no CA certificate' };
    const until = Math.min(...(kind === 'ca' ? chain : [first]).map(({ validToDate }) => validToDate.getTime()));
    return {
      name,
      kind,
      subject: first.subject.split('\n').join(', '),
      from: first.validFromDate.toISOString(),
      until: new Date(until).toISOString(),
      ours:
        authorities.length === 0
          ? undefined
          : authorities.some((ca) => first.raw.equals(ca.raw) || (first.checkIssued(ca) && first.verify(ca.publicKey))),
    };
  } catch (error) {
    return { name, kind, problem: fileProblemOf(error) };
  }
}

async function revocationList(directory: string, authorities: readonly X509Certificate[]): Promise<RevocationListFile> {
  try {
    const list = revocationListHead(await readBounded(join(directory, REVOCATION_LIST), LARGEST_LIST_BYTES));
    return {
      ours: authorities.length === 0 ? undefined : authorities.some((ca) => list.isSignedBy(ca)),
      this_update: list.thisUpdate.toISOString(),
      next_update: list.nextUpdate?.toISOString() ?? null,
    };
  } catch (error) {
    return { problem: fileProblemOf(error) };
  }
}

/** The certificates of a PEM file, in order. */
export async function chainIn(path: string): Promise<X509Certificate[]> {
  const text = (await readBounded(path, LARGEST_CERTIFICATE_BYTES)).toString('latin1');
  return (text.match(PEM_CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
}

/** A file system that hangs must not block a download. */
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
