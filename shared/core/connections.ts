// Pools connections to one port of the core, over TLS with the core's own CA. The files behind it
// are checked at most once a second, and read again when they have changed or after the core
// refused us.

import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import type { Dispatcher, Pool } from 'undici';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { API_ACCOUNT } from '@holdfast/kit/names';
import { CoreConnector } from './connector.ts';

/**
 * The password of every bundle of the embedded core and of a release; it is public and protects
 * nothing.
 */
const BUNDLE_PASSWORD = 'atakatak';
const LARGEST_BYTES = 256 * 1024;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The files for mutual TLS between the core and us: its CA, and the client certificate of svc_api.
 * A file that is missing, unreadable or invalid is named with its remedy.
 */
export interface CredentialsOptions {
  /** CORE_DATA_DIR. */
  dataDir: string;
  /**
   * `own`: trusts only the core's CA, and presents svc_api. `public`: also trusts the platform's
   * CAs, and presents nothing.
   */
  trust: 'own' | 'public';
}

export interface CoreCredentials {
  context: SecureContext;
  /** Of `ca.pem`, in its order. */
  authorities: X509Certificate[];
}

export interface CredentialFiles {
  ca: string;
  /** Undefined when no client certificate is presented. */
  bundle: string | undefined;
  /** Changes whenever a file changes. */
  mark(): Promise<string>;
  read(): Promise<CoreCredentials>;
}

export function credentialFiles({ dataDir, trust }: CredentialsOptions): CredentialFiles {
  const place = (name: string): string => join(dataDir, 'certs', 'files', name);
  const ca = place('ca.pem');
  const bundle = trust === 'own' ? place(`${API_ACCOUNT}.p12`) : undefined;

  async function markOf(file: string): Promise<string> {
    const { dev, ino, size, mtimeMs, ctimeMs } = await statOf(file);
    return [dev, ino, size, mtimeMs, ctimeMs].join();
  }

  async function read(): Promise<CoreCredentials> {
    const authorities = authoritiesIn(ca, await bytesOf(ca));
    const own = authorities.map((each) => each.toString());
    // An own authority may be an intermediate one, as TAK Server's scripts make it: being in the
    // file is enough.
    const trusted = { ca: trust === 'public' ? [...own, ...rootCertificates] : own, allowPartialTrustChain: true };
    if (bundle === undefined) return { authorities, context: createSecureContext(trusted) };
    return { authorities, context: contextWith(bundle, await bytesOf(bundle), trusted) };
  }

  return {
    ca,
    bundle,
    mark: async () => (await Promise.all([ca, ...(bundle === undefined ? [] : [bundle])].map(markOf))).join(' '),
    read,
  };
}

async function statOf(file: string) {
  const found = await stat(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  if (!found.isFile()) throw unfit(file, "isn't a regular file");
  if (found.size > LARGEST_BYTES) throw unfit(file, `has more than ${LARGEST_BYTES} bytes`);
  return found;
}

async function bytesOf(file: string): Promise<Buffer> {
  await statOf(file);
  return readFile(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
}

function authoritiesIn(file: string, bytes: Buffer): X509Certificate[] {
  try {
    const found = (bytes.toString('latin1').match(PEM_CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
    if (found.some(({ ca }) => ca)) return found;
  } catch (error) {
    throw unfit(file, `contains a certificate that cannot be read (${codeOf(error) ?? messageOf(error)})`);
  }
  throw unfit(file, 'contains no CA certificate');
}

function contextWith(file: string, pfx: Buffer, trusted: { ca: string[] }): SecureContext {
  try {
    return createSecureContext({ ...trusted, pfx, passphrase: BUNDLE_PASSWORD });
  } catch (error) {
    const message = messageOf(error);
    if (/unsupported/i.test(message))
      throw unfit(
        file,
        'is encrypted in an outdated way (RC2). Convert it with `openssl pkcs12 -legacy`, then -export',
      );
    if (/mac verify/i.test(message)) throw unfit(file, `does not open with the usual password (${BUNDLE_PASSWORD})`);
    throw unfit(file, `isn't a PKCS#12 file with a key and its certificate (${message})`);
  }
}

function unreadable(file: string, error: unknown): AppError {
  const code = codeOf(error) ?? messageOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return unavailable(file, 'does not exist', 'start the core once, which creates it, or correct CORE_DATA_DIR');
  const remedy = code === 'EACCES' ? 'let the user of Holdfast read it' : 'check the file';
  return unavailable(file, `cannot be read (${code})`, remedy);
}

function unfit(file: string, what: string): AppError {
  return unavailable(file, what, 'restore the file that the core created');
}

function unavailable(file: string, what: string, remedy: string): AppError {
  return new AppError('unavailable', `The core cannot be called: ${file} ${what}. Remedy: ${remedy}.`);
}

const LOOK_MS = 1_000;
/**
 * Used when the core does not announce its idle timeout: a release closes idle connections after 20
 * s (Tomcat's default). The embedded core announces 65 s.
 */
const IDLE_MS = 4_000;

export interface ConnectionsOptions extends CredentialsOptions {
  /** Of one core, the preferred one first. */
  addresses: readonly [string, ...string[]];
  /** Maximum number of connections. */
  connections: number;
  /** Their source address; default: the system chooses. */
  localAddress?: string | undefined;
}

export interface Connections {
  pool: Pool;
  /** Call these on the pool. */
  request: (this: Dispatcher, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>;
  connector: CoreConnector;
  /** Of `ca.pem`, in its order. */
  authorities: X509Certificate[];
  /** The core's session, which saves it a lookup at each request. */
  cookie: string | undefined;
}

export class CoreConnections {
  readonly ca: string;
  /** Undefined when no client certificate is presented. */
  readonly bundle: string | undefined;
  readonly #options: ConnectionsOptions;
  readonly #files: CredentialFiles;
  #kept: (Connections & { mark: string }) | undefined;
  #lookedAtMs = 0;
  #looking: Promise<Connections> | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#files = credentialFiles(options);
    this.ca = this.#files.ca;
    this.bundle = this.#files.bundle;
  }

  /** The hosts of the address in use, else of all. */
  get hosts(): string {
    const reached = this.#kept?.connector.reached;
    const addresses = reached === undefined ? this.#options.addresses : [reached];
    return addresses.map((address) => new URL(address).host).join(', ');
  }

  async #poolWith(secureContext: SecureContext): Promise<Pick<Connections, 'pool' | 'request' | 'connector'>> {
    const { addresses, connections, localAddress } = this.#options;
    // Late: at the first request, not at the start of management.
    const [{ default: Pool }, { default: request }, { default: build }] = await Promise.all([
      import('undici/lib/dispatcher/pool.js'),
      import('undici/lib/api/api-request.js'),
      import('undici/lib/core/connect.js'),
    ]);
    const connector = new CoreConnector(addresses, secureContext, build);
    const pool = new Pool(new URL(addresses[0]).origin, {
      connections,
      allowH2: false,
      keepAliveTimeout: IDLE_MS,
      connect: connector.connect,
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    return { pool, request, connector };
  }

  async #look(): Promise<Connections> {
    const mark = await this.#files.mark();
    if (this.#kept?.mark !== mark) {
      const { context, authorities } = await this.#files.read();
      const opened = await this.#poolWith(context);
      this.#letGo();
      this.#kept = { ...opened, authorities, cookie: undefined, mark };
    }
    this.#lookedAtMs = performance.now();
    void this.#return(this.#kept);
    return this.#kept;
  }

  /** To the first address, which alone has some of the work. */
  async #return(from: Connections): Promise<void> {
    if (await from.connector.isFirstBack()) this.forget(from);
  }

  /** Requests in progress on them finish normally. */
  #letGo(): void {
    void this.#kept?.pool.close().catch(() => undefined);
    this.#kept = undefined;
  }

  /** The current ones; rejects with `unavailable` when a file is missing or invalid. */
  async current(): Promise<Connections> {
    if (this.#kept !== undefined && performance.now() - this.#lookedAtMs < LOOK_MS) return this.#kept;
    return (this.#looking ??= this.#look().finally(() => (this.#looking = undefined)));
  }

  /** After these were refused: reads the files again. */
  forget(refused: Connections): void {
    if (refused === this.#kept) this.#letGo();
  }

  async close(): Promise<void> {
    await this.#kept?.pool.destroy();
    this.#kept = undefined;
  }
}
