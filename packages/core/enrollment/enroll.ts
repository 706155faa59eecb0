// Enrolls a device: turns a signing request into a certificate that the core knows.

import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { AppError } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { oneLine, shortened } from '@holdfast/kit/text';
import {
  BIT_STRING,
  CONTEXT_0,
  type DerElement,
  derElements,
  DerError,
  derText,
  identifier,
  INTEGER,
  NULL,
  OBJECT_IDENTIFIER,
  onlyElement,
  SEQUENCE,
  SET,
} from '@holdfast/kit/tlv';
import type { Authority, SignedCertificate } from '@holdfast/pki/parts';
import { SUBJECT_ENTRIES } from '@holdfast/pki/subject';
import { CoreFault } from '../http/answers.ts';
import type { CertificateStore } from '../model/parts.ts';
import type { EnrollmentEvents } from './events.ts';
import { unauthorized } from './refusal.ts';
import type { SignedIn } from './sign-in.ts';

/** With the name of its curve, whatever parameters it came with. */
export interface CertifiableKey {
  key: KeyObject;
  /** SubjectPublicKeyInfo. */
  der: Uint8Array<ArrayBuffer>;
}

const CURVES = new Set(['prime256v1', 'secp384r1', 'secp521r1']);
const FEWEST_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;
const MAX_RSA_EXPONENT = 2n ** 64n;

/** What this side takes, for a person to read. */
export const KEYS_TAKEN = 'RSA of 2048 to 8192 bits, elliptic curves P-256, P-384 and P-521, and Ed25519';

/** The key in a SubjectPublicKeyInfo; undefined when it is none, or one that is not taken. */
export function certifiableKey(spki: Uint8Array): CertifiableKey | undefined {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
  if (!isTaken(key)) return undefined;
  const named = createPublicKey({ key: key.export({ format: 'jwk' }), format: 'jwk' });
  return { key: named, der: Uint8Array.from(named.export({ type: 'spki', format: 'der' })) };
}

function isTaken({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = details;
  if (type === 'ed25519') return true;
  if (type === 'ec') return CURVES.has(namedCurve);
  if (type !== 'rsa' || modulusLength < FEWEST_RSA_BITS || modulusLength > MAX_RSA_BITS) return false;
  return publicExponent >= 3n && publicExponent % 2n === 1n && publicExponent < MAX_RSA_EXPONENT;
}

/** Why no certificate is made; the message is for the person who enrolls. */
export class RequestRefused extends Error {}

interface SigningRequest {
  /** What is signed. */
  signed: Uint8Array;
  signature: Uint8Array;
  algorithm: DerElement;
  /** DER of the SubjectPublicKeyInfo. */
  publicKey: Uint8Array;
  /** Each with `type=value`, several where the name joins them. */
  subject: { type: string; value: string }[][];
}

const HEADER_LINES =
  /^\s*-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([^-]*)-----END (?:NEW )?CERTIFICATE REQUEST-----\s*$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

const COMMON_NAME = '2.5.4.3';
const TYPES: ReadonlyMap<string, string> = new Map([
  [COMMON_NAME, 'CN'],
  ['2.5.4.10', 'O'],
  ['2.5.4.11', 'OU'],
]);

/** By object identifier; null where the algorithm says it all. */
const DIGESTS: ReadonlyMap<string, { key: 'rsa' | 'ec' | 'ed25519'; digest: string | null }> = new Map([
  ['1.2.840.113549.1.1.5', { key: 'rsa', digest: 'sha1' }],
  ['1.2.840.113549.1.1.11', { key: 'rsa', digest: 'sha256' }],
  ['1.2.840.113549.1.1.12', { key: 'rsa', digest: 'sha384' }],
  ['1.2.840.113549.1.1.13', { key: 'rsa', digest: 'sha512' }],
  ['1.2.840.10045.4.1', { key: 'ec', digest: 'sha1' }],
  ['1.2.840.10045.4.3.2', { key: 'ec', digest: 'sha256' }],
  ['1.2.840.10045.4.3.3', { key: 'ec', digest: 'sha384' }],
  ['1.2.840.10045.4.3.4', { key: 'ec', digest: 'sha512' }],
  ['1.3.101.112', { key: 'ed25519', digest: null }],
]);

/**
 * The public key (SubjectPublicKeyInfo) of a request that is this user's and that the holder of the
 * key has signed. `text` is base64 with or without header lines (PKCS#10, RFC 2986); its extensions
 * are not read, for the CA alone says what a certificate may do. Throws RequestRefused, and nothing
 * else, for whatever else it is.
 */
export function publicKeyFor(username: string, text: string): Uint8Array<ArrayBuffer> {
  const request = readRequest(text);
  requireSubject(request, username);
  return requirePossession(request);
}

function readRequest(text: string): SigningRequest {
  try {
    return parse(bytesOf(text));
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw new RequestRefused(`Couldn't read the signing request: it has ${error.message}.`, { cause: error });
  }
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const body = (HEADER_LINES.exec(text)?.[1] ?? text).replaceAll(/\s+/g, '');
  if (body === '') throw new RequestRefused('The signing request is missing: the body is empty.');
  if (!BASE64.test(body)) throw new RequestRefused('The body is not a signing request: PKCS#10 in base64 is expected.');
  return Uint8Array.from(Buffer.from(body, 'base64'));
}

function parse(bytes: Uint8Array<ArrayBuffer>): SigningRequest {
  const parts = derElements(onlyElement(bytes, SEQUENCE).content);
  const info = parts.next(SEQUENCE);
  const algorithm = parts.next(SEQUENCE);
  const signature = parts.next(BIT_STRING).content;
  parts.end();
  if (signature[0] !== 0) throw new DerError('a signature that is no whole number of bytes');

  const fields = derElements(info.content);
  const version = fields.next(INTEGER).content;
  if (version.length !== 1 || version[0] !== 0) throw new DerError('a version that PKCS#10 does not have');
  const subject = readName(fields.next(SEQUENCE).content);
  const publicKey = fields.next(SEQUENCE).whole;
  if (!fields.done) fields.next(CONTEXT_0);
  fields.end();
  return { signed: info.whole, signature: signature.subarray(1), algorithm, publicKey, subject };
}

function readName(content: Uint8Array<ArrayBuffer>): SigningRequest['subject'] {
  const names = derElements(content);
  const subject: SigningRequest['subject'] = [];
  while (!names.done) {
    const pairs = derElements(names.next(SET).content);
    const joined: { type: string; value: string }[] = [];
    while (!pairs.done) {
      const pair = derElements(pairs.next(SEQUENCE).content);
      const type = identifier(pair.next(OBJECT_IDENTIFIER));
      const value = derText(pair.next());
      pair.end();
      joined.push({ type: TYPES.get(type) ?? type, value });
    }
    subject.push(joined);
  }
  return subject;
}

function requireSubject({ subject }: SigningRequest, username: string): void {
  const wanted = `CN=${username}, ${SUBJECT_ENTRIES.map(({ name, value }) => `${name}=${value}`).join(', ')}`;
  const refuse = (what: string): never => {
    throw new RequestRefused(`The subject of the signing request ${what}. It must be: ${wanted}`);
  };
  if (subject.some((joined) => joined.length !== 1)) refuse('joins several parts into one');
  const parts = subject.flat();
  const [name, ...otherNames] = parts.filter(({ type }) => type === 'CN');
  if (name === undefined || otherNames.length > 0) return refuse('must have one common name');
  if (nameKey(name.value) !== nameKey(username))
    refuse(`has the common name '${shown(name.value)}', but '${username}' is signed in`);
  for (const entry of SUBJECT_ENTRIES) {
    const given = parts.filter(({ type }) => type === entry.name).map(({ value }) => value);
    if (!given.includes(entry.value)) refuse(`lacks ${entry.name}=${entry.value}`);
  }
  if (parts.length !== SUBJECT_ENTRIES.length + 1)
    refuse(`has ${parts.length} parts where ${SUBJECT_ENTRIES.length + 1} are expected`);
}

/** Proof of possession: who asks holds the private key. */
function requirePossession({ publicKey, algorithm, signed, signature }: SigningRequest): Uint8Array<ArrayBuffer> {
  const certifiable = certifiableKey(publicKey);
  if (certifiable === undefined)
    throw new RequestRefused(`The key type of the signing request is not supported. Supported: ${KEYS_TAKEN}.`);
  const { key, der } = certifiable;
  const method = signatureMethod(algorithm);
  if (method === undefined || method.key !== key.asymmetricKeyType)
    throw new RequestRefused(
      'The signature type of the signing request is not supported. Supported: SHA-1, SHA-256, SHA-384 or SHA-512 with RSA (PKCS#1) or ECDSA, and Ed25519.',
    );
  if (!verifies(method.digest, signed, key, signature))
    throw new RequestRefused('The signature of the signing request does not match its key.');
  return der;
}

function signatureMethod(algorithm: DerElement) {
  try {
    const parts = derElements(algorithm.content);
    const type = identifier(parts.next(OBJECT_IDENTIFIER));
    if (!parts.done) parts.next(NULL);
    parts.end();
    return DIGESTS.get(type);
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}

/** What no signature can be made of, verifies nothing. */
function verifies(digest: string | null, signed: Uint8Array, key: Parameters<typeof verify>[2], signature: Uint8Array) {
  try {
    return verify(digest, signed, key, signature);
  } catch {
    return false;
  }
}

function shown(text: string): string {
  return shortened(oneLine(text), 80);
}

export interface EnrollOptions {
  authority: Pick<Authority, 'issue'>;
  certificates: Pick<CertificateStore, 'add'>;
  events: EnrollmentEvents;
  now: () => Date;
}

export interface EnrollmentOrder {
  /** PKCS#10 as it came. */
  request: string;
  /** May be empty. */
  clientUid: string;
  /** The client has told its version: it knows channels. */
  channels: boolean;
  /** Of the client. */
  address: string;
}

/**
 * Signs, records, and only then hands out. Throws CoreFault for a request that breaks the rules,
 * and a Refusal when the account was closed or its password ended meanwhile: what is recorded then,
 * nobody has got.
 */
export function createEnroll({ authority, certificates, events, now }: EnrollOptions) {
  return async function enroll({ entry, opens }: SignedIn, order: EnrollmentOrder): Promise<SignedCertificate> {
    const { username } = entry;
    const { clientUid, channels, address } = order;
    const at = now();
    const publicKey = requestedKey(username, order);
    const signed = await authority.issue({ publicKey, commonName: username, channels }, at).catch((error: unknown) => {
      throw unfitName(error, username, order);
    });
    await certificates.add(signed, { creator: username, clientUid }, at);
    // Whoever closes the account after this finds the certificate among those to revoke.
    if (!(await opens('core'))) {
      const reason = 'the account was closed, or its password changed, while the certificate was made';
      events.failed('password', { address, user: username, clientUid, reason });
      throw unauthorized('The username or password is no longer valid.');
    }
    events.signed({ user: username, clientUid, hash: signed.hash, serial: signed.serial, address });
    return signed;
  };

  /** A name of the directory that no certificate can have is no failure of the core. */
  function unfitName(error: unknown, user: string, { clientUid, address }: EnrollmentOrder): unknown {
    if (!(error instanceof AppError) || error.code !== 'invalid') return error;
    events.failed('request', { address, user, clientUid, reason: error.message });
    return new CoreFault('internal', error.message, { cause: error });
  }

  function requestedKey(username: string, { request, clientUid, address }: EnrollmentOrder): Uint8Array<ArrayBuffer> {
    try {
      return publicKeyFor(username, request);
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      events.failed('request', { address, user: username, clientUid, reason: error.message });
      throw new CoreFault('internal', error.message, { cause: error });
    }
  }
}
