// Issues bearer tokens: a JWT that carries its password encrypted, so that every node that has the
// key can bind again with it at each use. A token is never worth more than its password. Without a
// shared key a restart invalidates them all.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
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
const MAX_ENDED = 10_000;
const MAX_TOKEN_LENGTH = 4096;
/**
 * Some clients decode the whole token at once: this header has a length that base64 writes without
 * a rest.
 */
const HEADER = { alg: 'HS256', typ: 'JWT' } as const;
/** How far a clock may be set back without a fresh token seeming to come from the future. */
const STEP_SECONDS = 5;
const AUDIENCE = 'TAK';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const claimsSchema = z.object({ sub: z.string(), jti: z.string(), credential: z.string() });

export class Tokens {
  readonly #now: () => Date;
  readonly #signing: Uint8Array;
  readonly #encrypting: Uint8Array;
  /** Ids of tokens whose password is wrong by now, the oldest first. */
  readonly #ended = new Set<string>();

  /** `key`: of 32 bytes or more, the same on every node. */
  constructor(now: () => Date, key: Uint8Array = randomBytes(32)) {
    this.#now = now;
    this.#signing = derived(key, 'signature');
    this.#encrypting = derived(key, 'password');
  }

  /** `username` as the directory spells it. */
  async issue(username: string, password: string): Promise<IssuedToken> {
    const id = crypto.randomUUID();
    const seconds = Math.floor(this.#now().getTime() / 1000);
    const credential = this.#encrypt(password, id);
    const token = await new SignJWT({ sub: username, aud: AUDIENCE, jti: id, credential })
      .setProtectedHeader(HEADER)
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(seconds + LIFETIME_SECONDS)
      .sign(this.#signing);
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
      requiredClaims: ['exp'],
    };
    const verified = await jwtVerify(token, this.#signing, options).catch(() => undefined);
    const { data: claims } = claimsSchema.safeParse(verified?.payload);
    if (claims === undefined || this.#ended.has(claims.jti)) return undefined;
    if ((verified?.payload.exp ?? 0) * 1000 <= this.#now().getTime()) return undefined;
    const { jti: id, sub: username, credential } = claims;
    return { id, username, password: new Secret(this.#decrypt(credential, id)) };
  }

  /** On this node; others find out by themselves. */
  end(id: string): void {
    this.#ended.add(id);
    const [oldest] = this.#ended;
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
  }

  #encrypt(password: string, id: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#encrypting, nonce).setAAD(Buffer.from(id));
    const text = Buffer.concat([cipher.update(password, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
  }

  /** Of a token whose signature was checked. */
  #decrypt(credential: string, id: string): string {
    const bytes = Buffer.from(credential, 'base64url');
    const [nonce, tag] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)];
    const decipher = createDecipheriv(CIPHER, this.#encrypting, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(id)).setAuthTag(tag);
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
  }
}

function derived(key: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, '', `enrollment token ${purpose}`, 32));
}
