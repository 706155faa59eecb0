// Lists of certificates, kept until something is issued or revoked. Deleting rows does not clear them, as with a release.

import { KeptAnswers } from '../http/kept-answers.ts';
import type { CertificateRecord, CertificateSelection, CertificateStore } from '../model/parts.ts';

export interface CertificateLists {
  list(selection: CertificateSelection, username?: string): Promise<CertificateRecord[]>;
  /** After a certificate was issued or revoked. */
  clear(): void;
}

/** What others change in the table is seen then. */
const KEPT_MS = 30_000;
const MOST_KEPT = 50;

export function certificateLists(store: Pick<CertificateStore, 'list'>, now: () => Date): CertificateLists {
  const kept = new KeptAnswers<CertificateRecord[]>({ keptMs: KEPT_MS, most: MOST_KEPT, now });

  return {
    list(selection, username) {
      const key = username === undefined ? selection : `${selection} ${username}`;
      return kept.ask(key, () => store.list(selection, now(), username));
    },
    clear: () => kept.clear(),
  };
}
