// Keeps the core's certificates current: server certificate, `svc_api`, admin API rights and
// revocations.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { onceDaily } from '@holdfast/kit/retry';
import { openAuthority } from '@holdfast/pki/authority';
import {
  ensureServerCertificate,
  serverCertificateFiles,
  type ServerCertificateFiles,
} from '@holdfast/pki/server-certificate';
import { AdminGrants } from './admin/admin-grants.ts';
import { type ApiCertificate, ensureApiCertificate } from './admin/api-certificate.ts';
import { API_IDENTITY, USERS_FILE } from './admin/users-document.ts';
import { usersFile } from './admin/users-file.ts';
import type { CorePorts } from './core-ports.ts';
import type { CertificateStore } from './model/parts.ts';
import { KeptRevocations, ListUnwritten } from './revocations.ts';
import { certificateLists, certificateStore, type RunSql } from './store/certificates.ts';
import { revokedMark } from './store/tables.ts';
import { createLiveConnections } from './tls/connections.ts';

type Authority = Awaited<ReturnType<typeof openAuthority>>;

export interface CoreCertificatesOptions {
  /** {data_dir}: certificates, users file. */
  dataDirectory: string;
  /** Names and addresses in the server certificate. */
  serverNames: readonly string[];
  validityDays: number;
  /** Another node makes what is missing, and renews it. */
  isFollower?: boolean;
  /** Name of this node of a cluster. */
  node?: string | undefined;
  /** The database `cot`, migrated. */
  run: RunSql;
  log: Log;
  now: () => Date;
}

const RENEWAL_FAILED = 'certificate.renewal_failed';

export class CoreCertificates {
  readonly files: ServerCertificateFiles;
  readonly authority: Authority;
  readonly store: CertificateStore;
  readonly lists: ReturnType<typeof certificateLists>;
  readonly live = createLiveConnections();
  readonly revocations: KeptRevocations;
  readonly users: ReturnType<typeof usersFile>;
  readonly #options: CoreCertificatesOptions;
  readonly #grants: AdminGrants;
  readonly #renewDaily: () => Promise<void>;
  #ports: Pick<CorePorts, 'renew' | 'rebuildContexts'> | undefined;
  #api: ApiCertificate | undefined;
  #writtenMs = Number.NaN;
  /** One at a time: two would make `svc_api` anew, each its own. */
  #looking: Promise<void> | undefined;

  /** With all of them up to date. Rejects as `createCore` does. */
  static async open(options: CoreCertificatesOptions): Promise<CoreCertificates> {
    const { dataDirectory, serverNames, validityDays, node: writer, log, now } = options;
    if (options.isFollower !== true) await ensureServerCertificate(dataDirectory, serverNames, now());
    const files = serverCertificateFiles(dataDirectory);
    const warn = (text: string): void => log.warn('certificates.warning', { text });
    const opened = new CoreCertificates(
      options,
      files,
      await openAuthority(dataDirectory, { validityDays, warn, writer }),
    );
    await opened.#refreshRevocations();
    if (options.isFollower === true) return opened;
    opened.#api = await opened.#ensureApiCertificate();
    await opened.lookAtGrants();
    return opened;
  }

  private constructor(options: CoreCertificatesOptions, files: ServerCertificateFiles, authority: Authority) {
    const { dataDirectory, run, log, now } = options;
    this.#options = options;
    this.files = files;
    this.authority = authority;
    this.store = certificateStore(run);
    this.lists = certificateLists(this.store, now);
    this.users = usersFile(join(dataDirectory, USERS_FILE), log);
    this.revocations = new KeptRevocations({
      authority,
      certificates: this.store,
      tableMark: () => revokedMark(run),
      live: this.live,
      rebuildContexts: () => this.#ports?.rebuildContexts(),
      log,
      now,
    });
    this.#grants = new AdminGrants({
      directory: join(dataDirectory, 'admin-grants'),
      authority,
      certificates: this.store,
      users: this.users,
      isRevoked: (serial) => this.revocations.isRevoked(serial),
      log,
      now,
    });
    this.#renewDaily = onceDaily(() => this.#renew(), RENEWAL_FAILED, now, log);
  }

  /** Tells them of new certificates from now on. */
  serve(ports: Pick<CorePorts, 'renew' | 'rebuildContexts'>): void {
    this.#ports = ports;
  }

  /** As of CertificateStore; the lists show it at once. */
  async add(...given: Parameters<CertificateStore['add']>): ReturnType<CertificateStore['add']> {
    const record = await this.store.add(...given);
    this.lists.clear();
    return record;
  }

  /** To be called every half minute. Never rejects. */
  look(): Promise<void> {
    return (this.#looking ??= this.#lookOnce().finally(() => (this.#looking = undefined)));
  }

  /** To be called every second. Never rejects. */
  async lookAtGrants(): Promise<void> {
    if (this.#options.isFollower !== true) return this.#grants.look();
  }

  async #lookOnce(): Promise<void> {
    await this.revocations.look();
    if (this.#options.isFollower === true) return this.#followFiles();
    await this.#keepApiOpen();
    await this.#renewDaily();
  }

  /** Another node has renewed the server certificate. */
  #followFiles(): void {
    try {
      const { mtimeMs } = statSync(this.files.certificate);
      if (mtimeMs !== this.#writtenMs) this.#ports?.renew();
      this.#writtenMs = mtimeMs;
    } catch (error) {
      this.#options.log.error(RENEWAL_FAILED, { error: messageOf(error) });
    }
  }

  /**
   * Rule `startWithoutList`: a full disk keeps nobody from the core; who is refused is known, and
   * the list is tried again.
   */
  async #refreshRevocations(): Promise<void> {
    try {
      await this.revocations.refresh();
    } catch (error) {
      if (!(error instanceof ListUnwritten)) throw error;
      this.#options.log.error('crl.not_written', { error: error.message });
    }
  }

  #ensureApiCertificate(): Promise<ApiCertificate> {
    return ensureApiCertificate({
      coreDirectory: this.#options.dataDirectory,
      authority: this.authority,
      certificates: this.store,
      users: this.users,
      isRevoked: (serial) => this.revocations.isRevoked(serial),
      now: this.#options.now(),
    });
  }

  async #renew(): Promise<void> {
    const { dataDirectory, serverNames, log, now } = this.#options;
    const { changed, certificate } = await ensureServerCertificate(dataDirectory, serverNames, now());
    if (changed) {
      this.#ports?.renew();
      log.info('certificate.renewed', { file: certificate });
    }
    this.#api = await this.#ensureApiCertificate();
  }

  /** Management has no other way in: it must not wait for the day to be over. */
  async #keepApiOpen(): Promise<void> {
    const { log } = this.#options;
    const before = this.#api;
    const isRevoked = before !== undefined && this.revocations.isRevoked(before.serial);
    const hasRight = before !== undefined && this.users.roleOf({ hash: before.hash, commonName: '' }) === 'ROLE_ADMIN';
    if (!isRevoked && hasRight) return;
    try {
      const { file } = (this.#api = await this.#ensureApiCertificate());
      if (isRevoked) log.warn('certificate.replaced', { file, reason: 'it was revoked' });
      else
        log.warn('certificate.right_given_back', {
          name: API_IDENTITY,
          reason: 'its entry was gone from the users file',
        });
    } catch (error) {
      log.error(RENEWAL_FAILED, { error: messageOf(error) });
    }
  }
}
