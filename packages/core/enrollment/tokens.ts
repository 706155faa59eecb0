// Issues bearer tokens: a JWT for the client, with its meaning kept in memory. A restart
// invalidates them all. Each use binds again with the original password, so that a token is never
// worth more than its password.

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

const LIFETIME_SECONDS = 3600;
const MAX_TOKENS = 10_000;
/** So that one account cannot push out the tokens of all others. */
const MAX_TOKENS_PER_USER = 100;
const MAX_TOKEN_LENGTH = 4096;
/**
 * Some clients decode the whole token at once: this header has a length that base64 writes without
 * a rest.
 */
const HEADER = { alg: 'HS256', typ: 'JWT' } as const;
/** How far a clock may be set back without a fresh token seeming to come from the future. */
const STEP_SECONDS = 5;
const AUDIENCE = 'TAK';

export class Tokens {
  readonly #now: () => Date;
  readonly #key = randomBytes(32);
  /** The oldest first. */
  readonly #kept = new Map<string, KeptCredentials & { owner: string; expiresMs: number }>();

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** `username` as the directory spells it. */
  async issue(username: string, password: string): Promise<IssuedToken> {
    const id = crypto.randomUUID();
    const seconds = Math.floor(this.#now().getTime() / 1000);
    const token = await new SignJWT({ sub: username, aud: AUDIENCE, jti: id })
      .setProtectedHeader(HEADER)
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(seconds + LIFETIME_SECONDS)
      .sign(this.#key);
    const owner = nameKey(username);
    this.#makeRoom(owner);
    const expiresMs = (seconds + LIFETIME_SECONDS) * 1000;
    this.#kept.set(id, { id, username, password: new Secret(password), owner, expiresMs });
    return { id, token, lifetimeSeconds: LIFETIME_SECONDS };
  }

  /** What a token stands for; undefined when it is none of ours, has expired or was ended. */
  async recognize(token: string): Promise<KeptCredentials | undefined> {
    if (token.length > MAX_TOKEN_LENGTH) return undefined;
    const options = {
      algorithms: [HEADER.alg],
      audience: AUDIENCE,
      currentDate: this.#now(),
      clockTolerance: STEP_SECONDS,
    };
    const verified = await jwtVerify(token, this.#key, options).catch(() => undefined);
    const found = this.#kept.get(verified?.payload.jti ?? '');
    return found !== undefined && found.expiresMs > this.#now().getTime() ? found : undefined;
  }

  end(id: string): void {
    this.#kept.delete(id);
  }

  #makeRoom(owner: string): void {
    for (const [id, { expiresMs }] of this.#kept) if (expiresMs <= this.#now().getTime()) this.#kept.delete(id);
    const own = [...this.#kept.values()].filter((each) => each.owner === owner);
    const [oldest] = own.length < MAX_TOKENS_PER_USER ? this.#kept.values() : own;
    if (oldest !== undefined && (own.length >= MAX_TOKENS_PER_USER || this.#kept.size >= MAX_TOKENS))
      this.#kept.delete(oldest.id);
  }
}
