// Grants and revokes admin API rights for service accounts, as management requests them in the
// spool directory. `svc_x.pem` grants the right to that certificate, `svc_x.revoke` revokes it from
// that account. Safe to repeat after a crash.

import { X509Certificate } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { isServiceAccountName, nameKey } from '@holdfast/kit/names';
import type { Authority } from '@holdfast/pki/parts';
import type { CertificateRecord, Revocations, UsersFile } from '../model/parts.ts';
import { readClientCertificate } from '../tls/admission.ts';
import { API_IDENTITY } from './users-document.ts';

export interface AdminGrantOptions {
  directory: string;
  authority: Pick<Authority, 'chain'>;
  certificates: { byHash(hash: string): Promise<Pick<CertificateRecord, 'revocationDate'> | undefined> };
  /** Each may take its time. */
  users: {
    grant(entry: Parameters<UsersFile['grant']>[0] & { certificate: string }): Promise<void> | void;
    cancel(identifier: string): Promise<void> | void;
  };
  isRevoked: Revocations['isRevoked'];
  log: Log;
  now: () => Date;
}

const MAX_BYTES = 64 * 1024;
const MAX_CONCURRENT = 100;
/** In this order: what is given anew was asked for after what takes it away. */
const KINDS = ['.pem.taken', '.revoke', '.pem'] as const;

/** What is wrong with a file; it stays wrong however often it is read. */
class Refused extends Error {}

export class AdminGrants {
  readonly #options: AdminGrantOptions;
  readonly #reported = new Set<string>();
  #looking: Promise<void> | undefined;

  constructor(options: AdminGrantOptions) {
    this.#options = options;
  }

  /** Does what lies in the spool; cheap when nothing does. Never rejects. */
  look(): Promise<void> {
    return (this.#looking ??= this.#lookOnce().finally(() => (this.#looking = undefined)));
  }

  async #lookOnce(): Promise<void> {
    try {
      for (const name of await waitingIn(this.#options.directory)) await this.#carryOut(name);
    } catch (error) {
      this.#tell('core.admin_grants_unreadable', { directory: this.#options.directory, error: messageOf(error) });
    }
  }

  /**
   * What cannot be done now (no table, a broken users file) is tried again each time, and told
   * once.
   */
  async #carryOut(name: string): Promise<void> {
    let file = name;
    try {
      // One that is given meanwhile is another file, and is looked at next.
      if (name.endsWith('.pem')) file = await this.#moved(name, `${name}.taken`);
      if (name.endsWith('.revoke')) await this.#take(file);
      else await this.#give(file);
    } catch (error) {
      if (error instanceof Refused) await this.#refuse(file, error.message);
      else if (codeOf(error) !== 'ENOENT')
        this.#tell('core.admin_grant_waits', { file: withoutMark(name), error: messageOf(error) });
    }
  }

  async #give(file: string): Promise<void> {
    const { identifier, fingerprint, certificate } = await judged(
      accountOf(file),
      await readBounded(join(this.#options.directory, file)),
      this.#options,
    );
    await this.#options.users.grant({ identifier, fingerprint, role: 'ROLE_ADMIN', certificate });
    await rm(join(this.#options.directory, file), { force: true });
    this.#options.log.info('core.admin_right_given', { name: identifier, fingerprint });
  }

  /** One that could not be given yet was asked for before, and must not be given afterwards. */
  async #take(file: string): Promise<void> {
    const username = accountOf(file);
    await readBounded(join(this.#options.directory, file));
    const before = nameKey(`${username}.pem.taken`);
    for (const name of await readdir(this.#options.directory))
      if (nameKey(name) === before) await rm(join(this.#options.directory, name), { force: true });
    await this.#options.users.cancel(username);
    await rm(join(this.#options.directory, file), { force: true });
    this.#options.log.info('core.admin_right_taken', { name: username });
  }

  async #refuse(file: string, reason: string): Promise<void> {
    const refused = `${withoutMark(file)}.refused`;
    try {
      await rm(join(this.#options.directory, refused), { recursive: true, force: true });
      await this.#moved(file, refused);
      this.#options.log.warn('core.admin_grant_refused', { file: refused, reason });
    } catch (error) {
      this.#tell('core.admin_grant_refused', { file, reason, error: messageOf(error) });
    }
  }

  async #moved(from: string, to: string): Promise<string> {
    await rename(join(this.#options.directory, from), join(this.#options.directory, to));
    return to;
  }

  #tell(event: string, fields: Record<string, string>): void {
    const text = JSON.stringify([event, fields]);
    if (this.#reported.has(text)) return;
    if (this.#reported.size >= MAX_CONCURRENT) this.#reported.clear();
    this.#reported.add(text);
    this.#options.log.error(event, fields);
  }
}

function withoutMark(file: string): string {
  return file.replace(/\.taken$/, '');
}

/** Never through a link: whoever could put one there could point anywhere. */
async function waitingIn(directory: string): Promise<string[]> {
  let names: string[];
  try {
    if (!(await lstat(directory)).isDirectory()) throw new Error('it is not a directory');
    names = await readdir(directory);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
  const waiting = KINDS.flatMap((kind) => names.filter((name) => name.endsWith(kind)).toSorted());
  return waiting.slice(0, MAX_CONCURRENT);
}

function accountOf(name: string): string {
  const kind = KINDS.find((each) => name.endsWith(each)) ?? '';
  const username = name.slice(0, name.length - kind.length);
  if (!isServiceAccountName(username)) throw new Refused('it is not called after a service account (svc_…)');
  if (nameKey(username) === API_IDENTITY) throw new Refused(`the right of ${API_IDENTITY} is the core's own matter`);
  return username;
}

async function readBounded(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      if (codeOf(error) === 'ELOOP' || codeOf(error) === 'ENXIO') throw new Refused('it is no ordinary file');
      throw error;
    },
  );
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Refused('it is no ordinary file');
    if (stat.size > MAX_BYTES) throw new Refused(`it is larger than ${MAX_BYTES} bytes`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Of our CA, of that name, in the table, in force. */
async function judged(
  username: string,
  text: string,
  { authority, certificates, isRevoked, now }: AdminGrantOptions,
): Promise<{ identifier: string; fingerprint: string; certificate: string }> {
  const certificate = readCertificate(text);
  const ca = new X509Certificate(authority.chain[0] ?? '');
  if (!certificate.verify(ca.publicKey)) throw new Refused('the certificate is not of this CA');
  const { commonName, serial, hash } = readClientCertificate(certificate);
  if (nameKey(commonName) !== nameKey(username))
    throw new Refused(`the certificate is that of ${JSON.stringify(commonName.slice(0, 80))}`);
  if (certificate.validToDate <= now()) throw new Refused('the certificate has expired');
  const record = await certificates.byHash(hash);
  if (record === undefined) throw new Refused('the core has not recorded the certificate');
  if (record.revocationDate !== null || isRevoked(serial)) throw new Refused('the certificate is revoked');
  return { identifier: commonName, fingerprint: hash, certificate: certificate.toString() };
}

function readCertificate(text: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new Refused('it is no certificate');
  }
}
