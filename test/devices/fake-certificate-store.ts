// What Holdfast knows of certificates and enrollment, in memory.

import { nameKey } from '@holdfast/kit/names';
import type {
  CanaryRun,
  CertificateStore,
  EnrollmentToken,
  EnrollmentTokens,
  MadeCertificate,
  Revocation,
  RevocationOrder,
} from '../../shared/devices/port.ts';

export function fakeCertificateStore(): CertificateStore {
  const made = new Map<string, MadeCertificate>();
  const revocations = new Map<string, Revocation>();
  const orders = new Map<string, RevocationOrder>();
  const canaries: CanaryRun[] = [];
  const isOf = (usernames: readonly string[] | undefined, username: string): boolean =>
    usernames === undefined || usernames.some((each) => nameKey(each) === nameKey(username));
  const open = (): Revocation[] =>
    [...revocations.values()]
      .filter(({ state }) => state !== 'revoked')
      .toSorted((a, b) => a.wantedAt.localeCompare(b.wantedAt));

  return {
    async remember(certificate) {
      made.set(certificate.hash, { ...certificate });
    },
    made: async (usernames) => [...made.values()].filter(({ username }) => isOf(usernames, username)),
    async wantRevoked(certificates, wantedAt) {
      for (const { hash, username, serial, clientUid, issuedAt, expiresAt } of certificates)
        if (!revocations.has(hash))
          revocations.set(hash, {
            hash,
            username,
            serial,
            clientUid,
            issuedAt,
            expiresAt,
            wantedAt,
            state: 'revoking',
            checkedAt: null,
            provenAt: null,
            problem: null,
            streams: null,
          });
    },
    revocations: async (usernames) =>
      [...revocations.values()].filter(({ username }) => isOf(usernames, username)).map((each) => ({ ...each })),
    openRevocations: async (limit) => open().slice(0, limit),
    openRevocationCount: async () => open().length,
    noted: async (hashes) => [...new Set(hashes)].filter((hash) => revocations.has(hash)),
    provenSince: async (since) =>
      [...revocations.values()]
        .filter(({ provenAt }) => provenAt !== null && Date.parse(provenAt) >= Date.parse(since))
        .map(({ hash }) => hash),
    async settle(hash, settled) {
      const found = revocations.get(hash);
      if (found === undefined || found.state === 'revoked') return;
      const provenAt = settled.state === 'revoked' ? settled.checkedAt : null;
      revocations.set(hash, { ...found, ...settled, provenAt });
    },
    async order(order) {
      orders.set(nameKey(order.username), { ...order });
    },
    orders: async () => [...orders.values()].toSorted((a, b) => a.wantedAt.localeCompare(b.wantedAt)),
    async closeOrder({ username, wantedAt }) {
      if (orders.get(nameKey(username))?.wantedAt === wantedAt) orders.delete(nameKey(username));
    },
    lastCanary: async () => canaries.toSorted((a, b) => b.at.localeCompare(a.at))[0],
    async recordCanary(run) {
      if (!canaries.some(({ at }) => at === run.at)) canaries.push({ ...run });
    },
    hasOpenWork: async () => orders.size > 0 || open().length > 0,
  };
}

export function fakeEnrollmentTokens(): EnrollmentTokens {
  const tokens = new Map<string, EnrollmentToken>();
  return {
    async add(token) {
      if (tokens.has(token.identifier)) throw new Error(`The token ${token.identifier} is there already`);
      tokens.set(token.identifier, { ...token });
    },
    of: async (accountId) =>
      [...tokens.values()]
        .filter((each) => each.accountId === accountId)
        .toSorted((a, b) => b.createdAt.localeCompare(a.createdAt)),
    async remove(identifier) {
      tokens.delete(identifier);
    },
  };
}
