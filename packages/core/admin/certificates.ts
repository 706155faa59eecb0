// Serves /Marti/api/certadmin/cert: lists, revokes, downloads and deletes enrolled certificates.

import { X509Certificate } from 'node:crypto';
import { strToU8, zipSync } from 'fflate';
import { AppError } from '@holdfast/kit/app-error';
import { CONTEXT_0, derElements, INTEGER, onlyElement, SEQUENCE } from '@holdfast/kit/tlv';
import { normalSerial } from '@holdfast/pki/keys';
import { certificateDate, emptyAnswer, PageFault, plainText, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, invalid } from '../http/route.ts';
import type { CertificateRecord, CertificateSelection } from '../model/parts.ts';
import { serialOf } from '../tls/admission.ts';
import type { AdminApiOptions } from './options.ts';

/** The members that clients read; what has no value is null. */
export function takCert(record: CertificateRecord) {
  return {
    id: record.id,
    creatorDn: record.creatorDn,
    subjectDn: record.subjectDn,
    userDn: record.userDn,
    certificate: record.certificate,
    hash: record.hash,
    clientUid: record.clientUid,
    issuanceDate: certificateDate(record.issuanceDate),
    effectiveDate: certificateDate(record.effectiveDate),
    expirationDate: certificateDate(record.expirationDate),
    revocationDate: record.revocationDate === null ? null : certificateDate(record.revocationDate),
    token: record.token,
    serialNumber: serialNumberOf(record.certificate),
  };
}

/**
 * Lower-case hex without leading zeros; null for a row whose certificate cannot be read (rule
 * `foreignRow`).
 */
export function serialNumberOf(pem: string): string | null {
  try {
    return quickSerial(pem) ?? serialOf(new X509Certificate(pem));
  } catch {
    return null;
  }
}

const ALONE = /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/;
const HIGHEST_BIT = 0x80;

/**
 * From where it stands in every certificate of version 3. A list may have 20,000 of them, and
 * reading each as a whole takes ten times as long. Undefined, or a DerError, for what is not so
 * plain.
 */
function quickSerial(pem: string): string | undefined {
  const [, body] = ALONE.exec(pem) ?? [];
  if (body === undefined) return undefined;
  const signed = onlyElement(new Uint8Array(Buffer.from(body, 'base64')), SEQUENCE);
  const fields = derElements(derElements(signed.content).next(SEQUENCE).content);
  if (fields.next().tag !== CONTEXT_0) return undefined;
  const { tag, content } = fields.next();
  const isPlain = tag === INTEGER && (content[0] ?? HIGHEST_BIT) < HIGHEST_BIT;
  return isPlain ? normalSerial(Buffer.from(content).toString('hex')) : undefined;
}

const MAX_NAME = 64;

/** `1_ada_ClientCert.pem`: no character of a name leads out of a folder. */
export function pemFileName(position: number, { userDn }: Pick<CertificateRecord, 'userDn'>): string {
  const name = userDn.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, MAX_NAME);
  return `${position}_${name}_ClientCert.pem`;
}

const BASE = '/Marti/api/certadmin/cert';
const TYPE = 'TakCert';
const HIGHEST_ID = 2_147_483_647;
const SELECTIONS = ['active', 'replaced', 'expired', 'revoked'] as const satisfies CertificateSelection[];

export class CertificateRoutes {
  readonly #options: AdminApiOptions;

  constructor(options: AdminApiOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      { path: BASE, handlers: { GET: (c) => this.#list('all', c.req.query('username')) } },
      ...SELECTIONS.map((selection) => ({
        path: `${BASE}/${selection}`,
        handlers: { GET: () => this.#list(selection) },
      })),
      { path: `${BASE}/download/:ids`, handlers: { GET: (c) => this.#downloadMany(c) } },
      { path: `${BASE}/revoke/:ids`, handlers: { DELETE: (c) => this.#revokeMany(c) } },
      { path: `${BASE}/delete/:ids`, handlers: { DELETE: (c) => this.#removeMany(c) } },
      { path: `${BASE}/:hash`, handlers: { GET: (c) => this.#readOne(c), DELETE: (c) => this.#revokeOne(c) } },
      { path: `${BASE}/:hash/download`, handlers: { GET: (c) => this.#downloadOne(c) } },
    ];
  }

  async #list(selection: CertificateSelection, username?: string): Promise<Response> {
    return wrapped(TYPE, (await this.#options.lists.list(selection, username)).map(takCert), this.#options.nodeId);
  }

  /** A hash that nobody has makes the core's handler fail: 500 and a page, no 404. */
  async #named(c: AdminContext): Promise<CertificateRecord> {
    const found = await this.#options.certificates.byHash((c.req.param('hash') ?? '').toUpperCase());
    if (found === undefined) throw new PageFault(500, 'No certificate with this hash.');
    return found;
  }

  async #revoke(c: AdminContext, record: CertificateRecord): Promise<CertificateRecord> {
    try {
      return await this.#options.revocations.revoke(record, { except: c.env.connection.socket });
    } finally {
      this.#options.lists.clear();
    }
  }

  /** Ends when the caller is revoked meanwhile: the work of thousands takes a while. */
  async #revokeMany(c: AdminContext): Promise<Response> {
    const own = c.env.connection.certificate;
    const found = await this.#options.certificates.byIds(idsOf(c));
    const ownLast = found.toSorted((a, b) => Number(a.hash === own?.hash) - Number(b.hash === own?.hash));
    const failures: unknown[] = [];
    for (const record of ownLast) {
      if (own !== undefined && this.#options.revocations.isRevoked(own.serial))
        throw new PageFault(
          403,
          'Your own certificate was revoked before the others. Sign in with another certificate for the rest.',
        );
      await this.#revoke(c, record).catch((error: unknown) => failures.push(orStop(error)));
    }
    if (failures.length > 0) throw failures[0];
    return emptyAnswer();
  }

  async #downloadMany(c: AdminContext): Promise<Response> {
    const found = await this.#options.certificates.byIds(idsOf(c));
    const files = found.map((record, index) => [pemFileName(index + 1, record), strToU8(record.certificate)]);
    return new Response(zipSync(Object.fromEntries(files)), {
      headers: {
        'content-type': 'application/zip',
        'content-disposition': 'attachment; filename="certificates.zip"',
      },
    });
  }

  async #removeMany(c: AdminContext): Promise<Response> {
    await this.#options.certificates.remove(idsOf(c));
    return emptyAnswer();
  }

  async #readOne(c: AdminContext): Promise<Response> {
    return wrapped(TYPE, takCert(await this.#named(c)), this.#options.nodeId);
  }

  async #revokeOne(c: AdminContext): Promise<Response> {
    return wrapped(TYPE, takCert(await this.#revoke(c, await this.#named(c))), this.#options.nodeId);
  }

  async #downloadOne(c: AdminContext): Promise<Response> {
    return plainText((await this.#named(c)).certificate);
  }
}

/**
 * Rule `oneFailureKeepsNobodyIn`: a list that cannot be written stops no other revocation; a
 * database that is away does.
 */
function orStop(error: unknown): unknown {
  if (error instanceof AppError && error.code === 'unavailable') throw error;
  return error;
}

/** `1,2,3`; what no row can have is passed over. */
function idsOf(c: AdminContext): number[] {
  const text = c.req.param('ids') ?? '';
  if (!/^\d+(?:,\d+)*$/.test(text)) throw invalid(`"${text}" is no list of ids (1,2,3)`);
  return [...new Set(text.split(',').map(Number))].filter((id) => id <= HIGHEST_ID);
}
