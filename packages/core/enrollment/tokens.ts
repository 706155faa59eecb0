// Bearer tokens: a JWT for the client, and in this process's memory what it stands for. Each use binds again with the password
// that the token was given for, so that a token is never worth more than its password. A restart ends all.

import { randomBytes } from 'node:crypto';
import { jwtVerify, SignJWT } from 'jose';
import { nameKey } from '@holdfast/kit/names';
import { Secret } from '@holdfast/kit/secret';

export interface KeptCredentials {
  id: string;
  username: string;
  password: Secret;
}

export interface IssuedToken {
  id: string;
  token: string;
  lifetimeSeconds: number;
}

export interface Tokens {
  /** `username` as the directory spells it. */
  issue(username: string, password: string): Promise<IssuedToken>;
  /** What a token stands for; undefined when it is none of ours, has expired or was ended. */
  recognise(token: string): Promise<KeptCredentials | undefined>;
  end(id: string): void;
}

const LIFETIME_SECONDS = 3600;
const MOST_TOKENS = 10_000;
/** So that one account cannot push out the tokens of all others. */
const MOST_TOKENS_OF_ONE = 100;
const LONGEST_TOKEN = 4096;
/** Some clients decode the whole token at once: this header has a length that base64 writes without a rest. */
const HEADER = { alg: 'HS256', typ: 'JWT' } as const;
/** How far a clock may be set back without a fresh token seeming to come from the future. */
const STEP_SECONDS = 5;
const AUDIENCE = 'TAK';

export function createTokens(now: () => Date): Tokens {
  const key = randomBytes(32);
  /** The oldest first. */
  const kept = new Map<string, KeptCredentials & { owner: string; expiresMs: number }>();

  function makeRoom(owner: string): void {
    for (const [id, { expiresMs }] of kept) if (expiresMs <= now().getTime()) kept.delete(id);
    const own = [...kept.values()].filter((each) => each.owner === owner);
    const [oldest] = own.length < MOST_TOKENS_OF_ONE ? kept.values() : own;
    if (oldest !== undefined && (own.length >= MOST_TOKENS_OF_ONE || kept.size >= MOST_TOKENS)) kept.delete(oldest.id);
  }

  return {
    async issue(username, password) {
      const id = crypto.randomUUID();
      const seconds = Math.floor(now().getTime() / 1000);
      const token = await new SignJWT({ sub: username, aud: AUDIENCE, jti: id })
        .setProtectedHeader(HEADER)
        .setIssuedAt(seconds)
        .setNotBefore(seconds)
        .setExpirationTime(seconds + LIFETIME_SECONDS)
        .sign(key);
      const owner = nameKey(username);
      makeRoom(owner);
      const expiresMs = (seconds + LIFETIME_SECONDS) * 1000;
      kept.set(id, { id, username, password: new Secret(password), owner, expiresMs });
      return { id, token, lifetimeSeconds: LIFETIME_SECONDS };
    },

    async recognise(token) {
      if (token.length > LONGEST_TOKEN) return undefined;
      const options = {
        algorithms: [HEADER.alg],
        audience: AUDIENCE,
        currentDate: now(),
        clockTolerance: STEP_SECONDS,
      };
      const verified = await jwtVerify(token, key, options).catch(() => undefined);
      const found = kept.get(verified?.payload.jti ?? '');
      return found !== undefined && found.expiresMs > now().getTime() ? found : undefined;
    },

    end: (id) => void kept.delete(id),
  };
}
