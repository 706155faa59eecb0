// Kept connections to one port of the core, over TLS that trusts what it should. The files behind it are looked at once a
// second at most, and read anew when they have changed or after the core has refused us.

import { X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import type { Dispatcher, Pool } from 'undici';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { API_ACCOUNT } from '@holdfast/kit/names';

/** Of every bundle of the embedded core and of a release; it is published, and protects nothing. */
const BUNDLE_PASSWORD = 'atakatak';
const LARGEST_BYTES = 256 * 1024;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The files by which the core and we know each other: its CA, and the client certificate of svc_api. A file that is missing,
 * cannot be read or is something else is named with its remedy.
 */
export interface CredentialsOptions {
  /** CORE_DATA_DIR. */
  dataDir: string;
  /** `own`: the core's CA alone, and we show svc_api. `public`: also what the platform trusts, and we show nothing. */
  trust: 'own' | 'public';
}

export interface CoreCredentials {
  context: SecureContext;
  /** Of `ca.pem`, in its order. */
  authorities: X509Certificate[];
}

export interface CredentialFiles {
  ca: string;
  /** Undefined where no client certificate is shown. */
  bundle: string | undefined;
  /** Another text as soon as a file is another one. */
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
    // An own authority may be an intermediate one, as TAK Server's scripts make it: that it is in the file is enough.
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
  if (!found.isFile()) throw unfit(file, 'is no file');
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
    throw unfit(file, `holds a certificate that cannot be read (${codeOf(error) ?? messageOf(error)})`);
  }
  throw unfit(file, 'holds no CA certificate');
}

function contextWith(file: string, pfx: Buffer, trusted: { ca: string[] }): SecureContext {
  try {
    return createSecureContext({ ...trusted, pfx, passphrase: BUNDLE_PASSWORD });
  } catch (error) {
    const message = messageOf(error);
    if (/unsupported/i.test(message))
      throw unfit(file, 'is encrypted in an old way (RC2). Write it anew with `openssl pkcs12 -legacy`, then -export');
    if (/mac verify/i.test(message)) throw unfit(file, `does not open with the usual password (${BUNDLE_PASSWORD})`);
    throw unfit(file, `is no PKCS#12 file with a key and its certificate (${message})`);
  }
}

function unreadable(file: string, error: unknown): AppError {
  const code = codeOf(error) ?? messageOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return unavailable(file, 'does not exist', 'start the core once, which makes it, or correct CORE_DATA_DIR');
  const remedy = code === 'EACCES' ? 'let the user of Holdfast read it' : 'see to the file';
  return unavailable(file, `cannot be read (${code})`, remedy);
}

function unfit(file: string, what: string): AppError {
  return unavailable(file, what, 'put the file that the core has made back in its place');
}

function unavailable(file: string, what: string, remedy: string): AppError {
  return new AppError('unavailable', `The core cannot be asked: ${file} ${what}. Remedy: ${remedy}.`);
}

const LOOK_MS = 1_000;
const CONNECT_WITHIN_MS = 5_000;
/** Where the core does not say how long it keeps idle ones: a release ends them after 20 s (Tomcat's default). The embedded core says 65 s. */
const IDLE_MS = 4_000;

export interface ConnectionsOptions extends CredentialsOptions {
  /** Scheme, host and port. */
  origin: string;
  /** How many at most. */
  connections: number;
  /** What they come from; default: as the system sees fit. */
  localAddress?: string | undefined;
}

export interface Connections {
  pool: Pool;
  /** To be called on the pool. */
  request: (this: Dispatcher, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>;
  /** Of `ca.pem`, in its order. */
  authorities: X509Certificate[];
  /** The session of the core, which spares it to look us up at each request. */
  cookie: string | undefined;
}

export class CoreConnections {
  readonly ca: string;
  /** Undefined where no client certificate is shown. */
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

  async #poolWith(secureContext: SecureContext): Promise<Pick<Connections, 'pool' | 'request'>> {
    const { origin, connections, localAddress } = this.#options;
    // Late: at the first request, not at the start of management.
    const [{ default: Pool }, { default: request }] = await Promise.all([
      import('undici/lib/dispatcher/pool.js'),
      import('undici/lib/api/api-request.js'),
    ]);
    const pool = new Pool(origin, {
      connections,
      allowH2: false,
      keepAliveTimeout: IDLE_MS,
      connect: { secureContext, timeout: CONNECT_WITHIN_MS },
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    return { pool, request };
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
    return this.#kept;
  }

  /** What is under way on them ends as it would have. */
  #letGo(): void {
    void this.#kept?.pool.close().catch(() => undefined);
    this.#kept = undefined;
  }

  /** Those of now; rejects with `unavailable` when a file is missing or unfit. */
  async current(): Promise<Connections> {
    if (this.#kept !== undefined && performance.now() - this.#lookedAtMs < LOOK_MS) return this.#kept;
    return (this.#looking ??= this.#look().finally(() => (this.#looking = undefined)));
  }

  /** After these were refused: the files are read anew. */
  forget(refused: Connections): void {
    if (refused === this.#kept) this.#letGo();
  }

  async close(): Promise<void> {
    await this.#kept?.pool.destroy();
    this.#kept = undefined;
  }
}
