// What enrollment needs around it, in memory: a CA that really signs, a table of certificates, and
// an API that says who asked.

import 'reflect-metadata';
import { createHash, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { ADMIN_ROLE_GROUP } from '@holdfast/kit/names';
import type { Authority } from '@holdfast/pki/parts';
import { SUBJECT_ENTRIES } from '@holdfast/pki/subject';
import { basic, memoryLog } from '../../../test/http/fake-deps.ts';
import { type FakeDirectory, fakeDirectory } from '../../../test/sign-in/fake-directory.ts';
import { issue, type Issued } from '../../../test/support/certificates.ts';
import { createEnrollmentApi } from '../enrollment/app.ts';
import { EnrollmentAttempts } from '../enrollment/events.ts';
import type { CertificateBundle } from '../enrollment/written-certificate.ts';
import type { CoreCaller, CoreConnection } from '../model/parts.ts';
import { type MemoryCertificates, memoryCertificates } from './fake-core-certificates.ts';
import { withoutProfiles } from './fake-core-profiles.ts';

const CHANNELS = '1.2.840.113549.1.9.7';
const YEAR_MS = 365 * 86_400_000;

export interface FakeAuthority extends Pick<Authority, 'chain' | 'issue'> {
  /** Called before each signature. */
  before: () => Promise<void>;
}

export async function fakeAuthority(ca?: Issued): Promise<FakeAuthority> {
  const { certificate, keys, pem } = ca ?? (await issue('CA of the tests', undefined, { ca: true }));
  let serial = 0x1000;
  const authority: FakeAuthority = {
    chain: [pem],
    before: async () => undefined,

    async issue({ publicKey, commonName, channels }, now) {
      await authority.before();
      const usages = [x509.ExtendedKeyUsage.clientAuth, ...(channels ? [CHANNELS] : [])];
      const entries = SUBJECT_ENTRIES.map(({ name, value }) => ({ [name]: [value] }));
      const signed = await x509.X509CertificateGenerator.create({
        serialNumber: (serial += 1).toString(16),
        subject: new x509.Name([...entries, { CN: [commonName] }]),
        issuer: certificate.subjectName,
        notBefore: now,
        notAfter: new Date(now.getTime() + YEAR_MS),
        signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
        publicKey: new x509.PublicKey(publicKey),
        signingKey: keys.privateKey,
        extensions: [new x509.ExtendedKeyUsageExtension(usages)],
      });
      const der = new Uint8Array(signed.rawData);
      return {
        pem: `${signed.toString('pem')}\n`,
        der,
        serial: serial.toString(16),
        hash: new X509Certificate(der).fingerprint256,
        subject: `CN=${commonName},OU=CoT,O=Holdfast`,
        commonName,
        notBefore: signed.notBefore,
        notAfter: signed.notAfter,
      };
    },
  };
  return authority;
}

/** Not PKCS#12: what would stand in it, as JSON. */
const listedBundle: CertificateBundle = async (entries, password) => {
  const listed = entries.map(({ friendlyName, certificate }) => [
    friendlyName,
    createHash('sha256').update(certificate).digest('hex'),
  ]);
  return new Uint8Array(new TextEncoder().encode(JSON.stringify({ password, listed })));
};

export const PASSWORD = 'correct horse battery';
export const ADA_SIGNS_IN = basic('ada', PASSWORD);

export interface AskOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string | ReadableStream<Uint8Array>;
  address?: string;
}

export interface EnrollmentWorld {
  directory: FakeDirectory;
  authority: FakeAuthority;
  certificates: MemoryCertificates;
  attempts: EnrollmentAttempts;
  log: ReturnType<typeof memoryLog>;
  /** What reached the admin API. */
  callers: CoreCaller[];
  /** Moves both clocks. */
  later(ms: number): void;
  /** Binds that were tried, as `base name`. */
  readonly binds: string[];
  ask(path: string, options?: AskOptions): Promise<Response>;
}

/**
 * With ada, who has the app password `code of ada`, and wanda, who administers and has `code of
 * wanda`.
 */
export async function enrollmentWorld(bundle = listedBundle): Promise<EnrollmentWorld> {
  let nowMs = Date.parse('2026-11-22T10:00:00.500Z');
  const now = (): Date => new Date(nowMs);
  const directory = fakeDirectory(now);
  directory.addGroup(ADMIN_ROLE_GROUP);
  for (const name of ['ada', 'wanda']) {
    const expires = new Date(nowMs + 86_400_000);
    directory.addPerson(name, PASSWORD).appPasswords.push({ text: `code of ${name}`, expires });
  }
  directory.people.get('wanda')?.groups.push(ADMIN_ROLE_GROUP);
  const authority = await fakeAuthority();
  const certificates = memoryCertificates();
  const log = memoryLog();
  const attempts = new EnrollmentAttempts(now);
  const callers: CoreCaller[] = [];
  const binds: string[] = [];
  const api = createEnrollmentApi({
    directory: {
      signIn: async (base, username, password) => {
        binds.push(`${base} ${username}`);
        return directory.signIn(base, username, password);
      },
    },
    authority,
    certificates,
    bundle,
    adminApi: (request, _, caller) => {
      callers.push(caller);
      return new Response(`${request.method} ${new URL(request.url).pathname} as ${caller.role}`);
    },
    profiles: withoutProfiles(now),
    attempts,
    log,
    now,
    steadyMs: () => nowMs,
  });

  async function ask(path: string, options: AskOptions = {}): Promise<Response> {
    const { method = 'GET', headers = {}, body, address = '192.0.2.7' } = options;
    const init = { method, headers, ...(body === undefined ? {} : { body, duplex: 'half' as const }) };
    const connection: CoreConnection = { clientAddress: address, secure: true };
    return api(new Request(`https://cot.example.org:8446${path}`, init), connection);
  }
  return { directory, authority, certificates, attempts, log, callers, later: (ms) => void (nowMs += ms), binds, ask };
}
