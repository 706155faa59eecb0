// The table of certificates and the users file of the core, in memory.

import { nameKey } from '@holdfast/kit/names';
import type { CertificateRecord, CertificateSelection, CertificateStore, CoreRole, UsersFile } from '../model/parts.ts';

export interface MemoryCertificates extends CertificateStore {
  /** The table itself, for those who change it by hand. */
  readonly rows: CertificateRecord[];
  /** The row itself, which lives in the table. */
  row(id: number): CertificateRecord;
  /** Called before each row that is added; one that rejects keeps it out. */
  before: () => Promise<void>;
  /** Every call rejects so from now on; with undefined the table is there again. */
  unavailable(error: Error | undefined): void;
  /** Another text as soon as a revocation date was set, changed or taken away. */
  mark(): Promise<string>;
}

/** Selects and sorts as the table does. What it gives out are copies. */
export function memoryCertificates(): MemoryCertificates {
  const rows: CertificateRecord[] = [];
  let failure: Error | undefined;
  let last = 0;

  function here(): CertificateRecord[] {
    if (failure !== undefined) throw failure;
    return rows.toSorted((a, b) => a.id - b.id);
  }

  const isReplaced = (row: CertificateRecord): boolean =>
    rows.some(
      (other) =>
        other.clientUid === row.clientUid &&
        other.userDn === row.userDn &&
        (+other.issuanceDate - +row.issuanceDate || other.id - row.id) > 0,
    );
  const selections: Record<CertificateSelection, (row: CertificateRecord, now: Date) => boolean> = {
    all: () => true,
    active: (row) => !isReplaced(row),
    replaced: isReplaced,
    expired: (row, now) => row.expirationDate < now,
    revoked: (row) => row.revocationDate !== null,
  };

  const store: MemoryCertificates = {
    rows,
    before: async () => undefined,
    unavailable: (error) => void (failure = error),
    row(id) {
      const row = here().find((each) => each.id === id);
      if (row === undefined) throw new Error(`there is no row ${id}`);
      return row;
    },
    mark: async () =>
      here()
        .flatMap(({ id, revocationDate }) => (revocationDate === null ? [] : `${id} ${revocationDate.getTime()}`))
        .join(),
    async add(signed, { creator, clientUid }, now) {
      await store.before();
      here();
      const row: CertificateRecord = {
        id: ++last,
        creatorDn: creator,
        subjectDn: signed.subject,
        userDn: signed.commonName,
        certificate: signed.pem,
        hash: signed.hash,
        clientUid,
        issuanceDate: now,
        effectiveDate: signed.notBefore,
        expirationDate: signed.notAfter,
        revocationDate: null,
        token: null,
      };
      rows.push(structuredClone(row));
      return row;
    },
    list: async (selection, now, username) =>
      here()
        .filter((row) => selections[selection](row, now) && (username === undefined || row.userDn === username))
        .toSorted((a, b) => Buffer.compare(Buffer.from(a.clientUid), Buffer.from(b.clientUid)))
        .map((row) => structuredClone(row)),
    byHash: async (hash) => structuredClone(here().find((row) => row.hash === hash)),
    byIds: async (ids) => structuredClone(here().filter(({ id }) => ids.includes(id))),
    async setRevoked(id, at) {
      const row = store.row(id);
      row.revocationDate ??= new Date(at);
      return structuredClone(row);
    },
    async remove(ids) {
      rows.splice(0, rows.length, ...here().filter(({ id }) => !ids.includes(id)));
    },
  };
  return store;
}

/** Entries by name, found by fingerprint. */
export function memoryUsersFile(): UsersFile {
  const entries = new Map<string, { fingerprint: string; role: CoreRole }>();
  return {
    roleOf: ({ hash }) =>
      [...entries.values()].find(({ fingerprint }) => fingerprint === hash)?.role ?? 'ROLE_ANONYMOUS',
    grant: ({ identifier, fingerprint, role }) => void entries.set(identifier, { fingerprint, role }),
    cancel(identifier) {
      for (const name of entries.keys()) if (nameKey(name) === nameKey(identifier)) entries.delete(name);
    },
  };
}
