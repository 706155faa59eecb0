// Lists of certificates, kept until something is issued or revoked. Deleting rows does not clear them, as with a release.

import type { CertificateRecord, CertificateSelection, CertificateStore } from '../parts.ts';

export interface CertificateLists {
  list(selection: CertificateSelection, username?: string): Promise<CertificateRecord[]>;
  /** After a certificate was issued or revoked. */
  clear(): void;
}

/** What others change in the table is seen then. */
const KEPT_MS = 30_000;
const MOST_KEPT = 50;

interface Kept {
  atMs: number;
  records: Promise<CertificateRecord[]>;
}

export function certificateLists(store: Pick<CertificateStore, 'list'>, now: () => Date): CertificateLists {
  const kept = new Map<string, Kept>();

  return {
    list(selection, username) {
      const key = username === undefined ? selection : `${selection} ${username}`;
      const known = kept.get(key);
      const age = known === undefined ? KEPT_MS : now().getTime() - known.atMs;
      if (known !== undefined && age >= 0 && age < KEPT_MS) return known.records;
      const asked: Kept = { atMs: now().getTime(), records: store.list(selection, now(), username) };
      if (kept.size >= MOST_KEPT) kept.clear();
      kept.set(key, asked);
      asked.records.catch(() => {
        if (kept.get(key) === asked) kept.delete(key);
      });
      return asked.records;
    },
    clear: () => kept.clear(),
  };
}
