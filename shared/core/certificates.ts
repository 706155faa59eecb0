// Certificates by the core's admin API. What it answers to a change is never taken for the change: it is read back.

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
/** 20,000 certificates are about 40 MB, which take their time. */
const LIST = { withinMs: 20_000, maxBytes: 128 * 1024 * 1024 };
/** Somebody waits for it. */
const OF_USER_WITHIN_MS = 5_000;
const TRIES = 10;

/** A date that cannot be read is an answer that makes no sense: nothing is guessed. */
const date = z.string().transform((text, issues) => {
  const read = coreDate(text);
  if (read === undefined) issues.addIssue({ code: 'custom', message: `'${text}' is no date of the core` });
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
    // Rows from before the core kept hashes have none.
    const hash = read.hash?.toUpperCase() ?? parsed()?.fingerprint256;
    const issuedAt = read.issuanceDate ?? read.effectiveDate;
    if (hash === undefined || typeof issuedAt !== 'string') {
      issues.addIssue({ code: 'custom', message: 'neither hash nor certificate, or neither date of its begin' });
      return z.NEVER;
    }
    return {
      hash,
      serial: serialIn(read.serialNumber) ?? serialIn(parsed()?.serialNumber) ?? '',
      username: read.userDn,
      clientUid: read.clientUid ?? '',
      issuedAt,
      // A certificate ends at a whole second; the record of a release has milliseconds of its own.
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
   * Rule `unknownIs500`: the core answers a hash that it does not know with a page of 500. The list of everything tells that
   * from a fault: what is not in it is unknown, and without a list nothing is said.
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
      throw port.wrong(`answers GET ${path} with another certificate (${found.hash.slice(0, 100)})`);
    return found;
  }

  return {
    async certificates(username) {
      if (username === undefined) return list(port.within(LIST.withinMs), '');
      // Rule `spelledAlike`: a release finds names in exactly this spelling. Whoever must miss none (a phone writes `Ada`) reads
      // the whole list.
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
      if (before === undefined) throw new AppError('not_found', `The core knows no certificate ${hash.slice(0, 100)}`);
      if (before.revokedAt !== null) return before;
      const path = `${BASE}/${encodeURIComponent(wanted)}`;
      const answer = await calls.ask('DELETE', path);
      for (let tried = 0; tried < (answer.status === 200 ? TRIES : 1); tried += 1) {
        if (tried > 0) await calls.moment();
        const after = await read(calls, wanted);
        // Whatever the answer was: the date is what counts, and the list is proven elsewhere.
        if (after !== undefined && after.revokedAt !== null) return after;
      }
      if (answer.status !== 200) throw port.failure(`DELETE ${path}`, answer);
      throw port.wrong(`has taken the revocation of ${wanted}, and shows it without a revocation date`);
    },
  };
}

/** Read when it is asked for first; undefined for what cannot be read. */
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
