// /Marti/api/certadmin/cert: every certificate that was enrolled; revoke, download, forget.

import { strToU8, zipSync } from 'fflate';
import { AppError } from '../../../../shared/domain/app-error.ts';
import { emptyAnswer, PageFault, plainText, wrapped } from '../http/answers.ts';
import type { CertificateRecord, CertificateSelection } from '../parts.ts';
import { invalid } from './body.ts';
import type { AdminApiOptions, AdminContext, AdminRoute } from './route.ts';
import { pemFileName, takCert } from './tak-cert.ts';

const BASE = '/Marti/api/certadmin/cert';
const TYPE = 'TakCert';
const HIGHEST_ID = 2_147_483_647;
const SELECTIONS = ['active', 'replaced', 'expired', 'revoked'] as const satisfies CertificateSelection[];

export function certificateRoutes({ certificates, lists, revocations, nodeId }: AdminApiOptions): AdminRoute[] {
  const list = (selection: CertificateSelection) =>
    async function listCertificates(c: AdminContext): Promise<Response> {
      const username = selection === 'all' ? c.req.query('username') : undefined;
      return wrapped(TYPE, (await lists.list(selection, username)).map(takCert), nodeId);
    };

  /** A hash that nobody has makes the core's handler fail: 500 and a page, no 404. */
  async function named(c: AdminContext): Promise<CertificateRecord> {
    const found = await certificates.byHash((c.req.param('hash') ?? '').toUpperCase());
    if (found === undefined) throw new PageFault(500, 'There is no certificate with this hash.');
    return found;
  }

  async function revoke(c: AdminContext, record: CertificateRecord): Promise<CertificateRecord> {
    try {
      return await revocations.revoke(record, { except: c.env.connection.socket });
    } finally {
      lists.clear();
    }
  }

  /** Ends when the caller is revoked meanwhile: the work of thousands takes a while. */
  async function revokeMany(c: AdminContext): Promise<Response> {
    const own = c.env.connection.certificate;
    const found = await certificates.byIds(idsOf(c));
    const ownLast = found.toSorted((a, b) => Number(a.hash === own?.hash) - Number(b.hash === own?.hash));
    const failures: unknown[] = [];
    for (const record of ownLast) {
      if (own !== undefined && revocations.isRevoked(own.serial))
        throw new PageFault(403, 'Your certificate was revoked before all of these were.');
      await revoke(c, record).catch((error: unknown) => failures.push(orStop(error)));
    }
    if (failures.length > 0) throw failures[0];
    return emptyAnswer();
  }

  return [
    { path: BASE, handlers: { GET: list('all') } },
    ...SELECTIONS.map((selection) => ({ path: `${BASE}/${selection}`, handlers: { GET: list(selection) } })),
    {
      path: `${BASE}/download/:ids`,
      handlers: {
        GET: async function downloadMany(c) {
          const found = await certificates.byIds(idsOf(c));
          const files = found.map((record, index) => [pemFileName(index + 1, record), strToU8(record.certificate)]);
          return new Response(zipSync(Object.fromEntries(files)), {
            headers: {
              'content-type': 'application/zip',
              'content-disposition': 'attachment; filename="certificates.zip"',
            },
          });
        },
      },
    },
    { path: `${BASE}/revoke/:ids`, handlers: { DELETE: revokeMany } },
    {
      path: `${BASE}/delete/:ids`,
      handlers: {
        DELETE: async function deleteMany(c) {
          await certificates.remove(idsOf(c));
          return emptyAnswer();
        },
      },
    },
    {
      path: `${BASE}/:hash`,
      handlers: {
        GET: async function readCertificate(c) {
          return wrapped(TYPE, takCert(await named(c)), nodeId);
        },
        DELETE: async function revokeCertificate(c) {
          return wrapped(TYPE, takCert(await revoke(c, await named(c))), nodeId);
        },
      },
    },
    {
      path: `${BASE}/:hash/download`,
      handlers: {
        GET: async function downloadCertificate(c) {
          return plainText((await named(c)).certificate);
        },
      },
    },
  ];
}

/** Rule `oneFailureKeepsNobodyIn`: a list that cannot be written stops no other revocation; a database that is away does. */
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
