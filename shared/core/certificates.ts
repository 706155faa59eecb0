// Reads and revokes certificates through the core's admin API. A change is always read back, never
// assumed from the response.

import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { serialIn } from '@holdfast/pki/parts';
import { coreDate } from './answers.ts';
import type { Core, CoreCertificate } from './port.ts';
import { type CoreCalls, type CorePort, WITHIN_MS } from './request.ts';

const BASE = '/Marti/api/certadmin/cert';
const HASH = /^[0-9A-F]{2}(?::[0-9A-F]{2}){31}$/;
/** 20,000 certificates are about 40 MB, which takes some time. */
const LIST = { withinMs: 20_000, maxBytes: 128 * 1024 * 1024 };
/** A caller is waiting for it. */
const OF_USER_WITHIN_MS = 5_000;
const TRIES = 10;

/** A date that can't be parsed makes the response invalid: nothing is guessed. */
const date = z.string().transform((text, issues) => {
  const read = coreDate(text);
  if (read === undefined) issues.addIssue({ code: 'custom', message: `'${text}' is not a date of the core` });
  return read ?? z.NEVER;
});

const record = z
  .object({
    hash: z.string().nullish(),
    userDn: z.string(),
    clientUid: z.string().nullish(),
    certificate: z.string().nullish(),
    serialNumber: z.string().nullish(),
    issuanceDate: date.nullish(),
    effectiveDate: date.nullish(),
    expirationDate: date,
    revocationDate: date.nullish(),
  })
  .transform((read, issues): CoreCertificate => {
    const pem = read.certificate ?? '';
    const parsed = once(() => new X509Certificate(pem));
    // Rows from before the core stored hashes have none.
    const hash = read.hash?.toUpperCase() ?? parsed()?.fingerprint256;
    const issuedAt = read.issuanceDate ?? read.effectiveDate;
    if (hash === undefined || typeof issuedAt !== 'string') {
      issues.addIssue({ code: 'custom', message: 'neither hash nor certificate, or neither of its start dates' });
      return z.NEVER;
    }
    return {
      hash,
      serial: serialIn(read.serialNumber) ?? serialIn(parsed()?.serialNumber) ?? '',
      username: read.userDn,
      clientUid: read.clientUid ?? '',
      issuedAt,
      // A certificate expires at a whole second; the record of a release has its own milliseconds.
      expiresAt: `${read.expirationDate.slice(0, 19)}.000Z`,
      revokedAt: read.revocationDate ?? null,
      pem,
    };
  });
const records = z.array(record);

type Methods = 'certificates' | 'certificate' | 'revokedCertificates' | 'revoke';

export function coreCertificates(port: CorePort): Pick<Core, Methods> {
  async function list(calls: CoreCalls, path: string, query: Record<string, string> = {}): Promise<CoreCertificate[]> {
    return calls.data(`${BASE}${path}`, records, { query, maxBytes: LIST.maxBytes });
  }

  /**
   * Rule `unknownIs500`: the core answers an unknown hash with an error page of status 500. The
   * full list distinguishes that from a fault: a hash that is not in it is unknown, and without a
   * list nothing is concluded.
   */
  async function read(calls: CoreCalls, hash: string): Promise<CoreCertificate | undefined> {
    const path = `${BASE}/${encodeURIComponent(hash)}`;
    const answer = await calls.ask('GET', path);
    if (answer.status === 404 || answer.status === 500) {
      const failure = port.failure(`GET ${path}`, answer);
      if (failure.code === 'unavailable') throw failure;
      const all = await list(port.within(LIST.withinMs), '');
      if (all.some((each) => each.hash === hash)) throw failure;
      return undefined;
    }
    const found = calls.read(`GET ${path}`, answer, z.object({ data: record })).data;
    if (found.hash !== hash)
      throw port.wrong(`answered GET ${path} with another certificate (${found.hash.slice(0, 100)})`);
    return found;
  }

  return {
    async certificates(username) {
      if (username === undefined) return list(port.within(LIST.withinMs), '');
      // Rule `spelledAlike`: a release finds names only in exactly this spelling. A caller that
      // must miss none (a device writes `Ada`) reads the whole list.
      const found = await list(port.within(OF_USER_WITHIN_MS), '', { username });
      return found.filter((each) => nameKey(each.username) === nameKey(username));
    },

    async certificate(hash) {
      const wanted = hash.toUpperCase();
      // Anything else would be another address: `active`, `download`.
      return HASH.test(wanted) ? read(port.within(WITHIN_MS), wanted) : undefined;
    },

    async revokedCertificates() {
      const found = await list(port.within(LIST.withinMs), '/revoked');
      return found.filter(({ revokedAt }) => revokedAt !== null);
    },

    async revoke(hash) {
      const wanted = hash.toUpperCase();
      const calls = port.within(WITHIN_MS);
      const before = HASH.test(wanted) ? await read(calls, wanted) : undefined;
      if (before === undefined) throw new AppError('not_found', `The core has no certificate ${hash.slice(0, 100)}`);
      if (before.revokedAt !== null) return before;
      const path = `${BASE}/${encodeURIComponent(wanted)}`;
      const answer = await calls.ask('DELETE', path);
      for (let tried = 0; tried < (answer.status === 200 ? TRIES : 1); tried += 1) {
        if (tried > 0) await calls.moment();
        const after = await read(calls, wanted);
        // The response does not matter: the date counts, and the revocation list is proven
        // elsewhere.
        if (after !== undefined && after.revokedAt !== null) return after;
      }
      if (answer.status !== 200) throw port.failure(`DELETE ${path}`, answer);
      throw port.wrong(`accepted the revocation of ${wanted}, but shows it without a revocation date`);
    },
  };
}

/** Loaded on first use; undefined when it can't be read. */
function once<T>(make: () => T): () => T | undefined {
  let made: { value: T | undefined } | undefined;
  return () => {
    if (made !== undefined) return made.value;
    try {
      made = { value: make() };
    } catch {
      made = { value: undefined };
    }
    return made.value;
  };
}
