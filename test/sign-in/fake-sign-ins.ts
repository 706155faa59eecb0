// Sessions and tokens in memory: the rules of the port, and nobody to wait for.

import { randomUUID } from 'node:crypto';
import { nameKey } from '@holdfast/kit/names';
import { type ApiToken, MAX_SESSIONS, type Session, type SignIns } from '../../shared/sign-in/port.ts';

interface Kept<T> {
  value: T;
  text: string;
  username: string;
  epoch: number;
}

export interface FakeSignIns extends SignIns {
  /** Ends everything that was signed for this person, as an outcome in the audit log does. */
  endAllOf(username: string): void;
}

export function fakeSignIns(now: () => Date = () => new Date()): FakeSignIns {
  const epochs = new Map<string, number>();
  const sessions = new Map<string, Kept<Session>>();
  const tokens = new Map<string, Kept<ApiToken>>();
  const epochOf = (username: string): number => epochs.get(nameKey(username)) ?? 0;

  function isValid({ value, username, epoch }: Kept<Session | ApiToken>): boolean {
    return epoch === epochOf(username) && value.expiresAt > now().toISOString();
  }

  function valid<T extends Session | ApiToken>(kept: Map<string, Kept<T>>): T[] {
    return [...kept.values()]
      .filter(isValid)
      .map(({ value }) => ({ ...value }))
      .toReversed();
  }

  function pageOf<T>(
    all: T[],
    { page, pageSize }: { page: number; pageSize: number },
  ): { results: T[]; count: number } {
    return { results: all.slice((page - 1) * pageSize, page * pageSize), count: all.length };
  }

  const mine = (username: string): Session[] =>
    valid(sessions).filter((session) => nameKey(session.username) === nameKey(username));

  return {
    async openSession({ id = randomUUID(), epoch, ...wanted }) {
      const { username } = wanted;
      const value = { ...wanted, id, createdAt: now().toISOString() };
      const text = `session-${randomUUID()}`;
      sessions.set(id, { value, text, username, epoch: epoch ?? epochOf(username) });
      const theirs = [...sessions.values()].filter((each) => nameKey(each.username) === nameKey(username));
      for (const old of theirs.slice(0, -MAX_SESSIONS)) sessions.delete(old.value.id);
      return { ...value, text };
    },
    async createToken({ id = randomUUID(), epoch, ...wanted }) {
      const value = { ...wanted, id, createdAt: now().toISOString() };
      const text = `hft_${randomUUID()}`;
      tokens.set(id, { value, text, username: value.owner, epoch: epoch ?? epochOf(value.owner) });
      return { ...value, text };
    },
    async recognize(kind, text) {
      const kept = kind === 'session' ? sessions : tokens;
      const found = [...kept.values()].find((each) => each.text === text);
      if (found === undefined || !isValid(found)) return undefined;
      const { id, expiresAt } = found.value;
      const scope = 'scope' in found.value ? { scope: found.value.scope } : {};
      return { kind, id, username: found.username, ...scope, expiresAt };
    },
    epoch: async (username) => epochOf(username),
    sessions: async (username, paging) => pageOf(mine(username), paging),
    endSession: async (username, id) => mine(username).some((session) => session.id === id) && sessions.delete(id),
    async endSessions(username) {
      return mine(username).filter(({ id }) => sessions.delete(id)).length;
    },
    tokens: async (paging) => pageOf(valid(tokens), paging),
    token: async (id) => valid(tokens).find((token) => token.id === id),
    endToken: async (id) => valid(tokens).some((token) => token.id === id) && tokens.delete(id),
    async prune(before) {
      let removed = 0;
      for (const kept of [sessions, tokens])
        for (const [id, { value, username, epoch }] of kept)
          if ((value.expiresAt < before || epoch !== epochOf(username)) && kept.delete(id)) removed += 1;
      return removed;
    },
    endAllOf: (username) => void epochs.set(nameKey(username), epochOf(username) + 1),
  };
}
