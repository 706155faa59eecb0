// Signs and checks the texts of sessions and API tokens: JSON Web Tokens with a random id. Cookies
// and API tokens have separate keys, types and audiences, so neither is ever accepted as the other.

import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import { errors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';
import type { SignedText } from './port.ts';

type Kind = SignedText['kind'];

const ISSUER = 'holdfast';
const ALGORITHM = 'HS256';
/** Secret scanners for repositories recognize a token by this prefix. */
const PREFIX: Record<Kind, string> = { session: '', token: 'hft_' };
const TYPE: Record<Kind, string> = { session: 'holdfast-session+jwt', token: 'holdfast-token+jwt' };
/** Only base64url characters, and only the one spelling that a 256-bit signature has. */
const FORM = /^[\w-]{20,200}\.[\w-]{40,2000}\.[\w-]{42}[AEIMQUYcgkosw048]$/;

const claimsSchema = z.object({ sub: z.string().min(1), jti: z.string().length(43) });

/** The content of a text, once its signature was checked. */
export interface Claims {
  username: string;
  /** SHA-256 of the id: what is stored. */
  digest: Buffer;
}

export interface SignedTexts {
  /** A new text, with the digest to store. `expiresAt` is ISO 8601. */
  sign(kind: Kind, username: string, expiresAt: string): Promise<{ text: string; digest: Buffer }>;
  /** Undefined for any text that was not signed here as this kind, or has expired. */
  read(kind: Kind, text: string): Promise<Claims | undefined>;
}

/** Both reject with `unavailable` while there is no key. */
export function signedTexts(key: Secret | undefined): SignedTexts {
  const keys = key && { session: derived(key, 'session'), token: derived(key, 'token') };

  function keyOf(kind: Kind): Uint8Array {
    if (keys !== undefined) return keys[kind];
    const text = "Sessions and API tokens can't be signed or checked, because SESSION_KEY is not set.";
    throw new AppError('unavailable', `${text} Remedy: set SESSION_KEY to the output of "openssl rand -hex 32".`);
  }

  return {
    async sign(kind, username, expiresAt) {
      const signingKey = keyOf(kind);
      const id = randomBytes(32).toString('base64url');
      const jwt = await new SignJWT()
        .setProtectedHeader({ alg: ALGORITHM, typ: TYPE[kind] })
        .setIssuer(ISSUER)
        .setAudience(kind)
        .setSubject(username)
        .setJti(id)
        .setExpirationTime(Math.ceil(Date.parse(expiresAt) / 1000))
        .sign(signingKey);
      return { text: PREFIX[kind] + jwt, digest: digestOf(id) };
    },

    async read(kind, text) {
      if (!text.startsWith(PREFIX[kind])) return undefined;
      const jwt = text.slice(PREFIX[kind].length);
      if (!FORM.test(jwt)) return undefined;
      const wanted = { algorithms: [ALGORITHM], typ: TYPE[kind], issuer: ISSUER, audience: kind };
      const verified = await jwtVerify(jwt, keyOf(kind), { ...wanted, requiredClaims: ['exp'] }).catch(refused);
      const claims = claimsSchema.safeParse(verified?.payload);
      return claims.success ? { username: claims.data.sub, digest: digestOf(claims.data.jti) } : undefined;
    },
  };
}

function derived(key: Secret, kind: Kind): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key.reveal(), '', `holdfast ${kind}`, 32));
}

function digestOf(id: string): Buffer {
  return createHash('sha256').update(id).digest();
}

/** An error of jose is a refusal of the text; any other error is ours. */
function refused(error: unknown): undefined {
  if (error instanceof errors.JOSEError) return undefined;
  throw error;
}
