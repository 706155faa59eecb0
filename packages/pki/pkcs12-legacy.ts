// PKCS#12 as it was written until 2020, for phones that refuse the new form: 3DES
// (pbeWithSHAAnd3-KeyTripleDES-CBC) for key and certificates, MAC with SHA-1 (RFC 7292). Never by
// default.

import { createCipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { CONTEXT_0, NULL, OBJECT_IDENTIFIER, SEQUENCE, SET } from '@holdfast/kit/tlv';
import type { KeyBundle } from './pkcs12.ts';

const [OCTET_STRING, INTEGER_TAG, BMP_STRING, CONTEXT_0_PRIMITIVE] = [0x04, 0x02, 0x1e, 0x80];
const DATA = '1.2.840.113549.1.7.1';
const ENCRYPTED_DATA = '1.2.840.113549.1.7.6';
const TRIPLE_DES = '1.2.840.113549.1.12.1.3';
const SHROUDED_KEY_BAG = '1.2.840.113549.1.12.10.1.2';
const CERTIFICATE_BAG = '1.2.840.113549.1.12.10.1.3';
const X509_CERTIFICATE = '1.2.840.113549.1.9.22.1';
const FRIENDLY_NAME = '1.2.840.113549.1.9.20';
const LOCAL_KEY_ID = '1.2.840.113549.1.9.21';
const SHA1 = '1.3.14.3.2.26';
const ITERATIONS = 2048;
/** Of SHA-1, in bytes: what it takes in at once, and what it gives. */
const [BLOCK, DIGEST] = [64, 20];

export function legacyKeyBundle(bundle: Omit<KeyBundle, 'iterations'>): Buffer {
  const { privateKeyPkcs8Der, certificate, chain, friendlyName } = bundle;
  const password = passwordBytes(bundle.password);
  const names = attributes(friendlyName, createHash('sha1').update(certificate).digest());
  const key = safeBag(SHROUDED_KEY_BAG, encrypted(password, privateKeyPkcs8Der, OCTET_STRING), names);
  const certificates = [certificateBag(certificate, names), ...chain.map((each) => certificateBag(each))];
  const sealed = sequence(
    whole(0),
    sequence(identifier(DATA), ...encryptedParts(password, sequence(...certificates), CONTEXT_0_PRIMITIVE)),
  );
  const safe = sequence(
    sequence(identifier(DATA), tagged(CONTEXT_0, octets(sequence(key)))),
    sequence(identifier(ENCRYPTED_DATA), tagged(CONTEXT_0, sealed)),
  );
  return sequence(whole(3), sequence(identifier(DATA), tagged(CONTEXT_0, octets(safe))), mac(password, safe));
}

function certificateBag(certificate: Uint8Array, names?: Buffer): Buffer {
  return safeBag(
    CERTIFICATE_BAG,
    sequence(identifier(X509_CERTIFICATE), tagged(CONTEXT_0, octets(certificate))),
    names,
  );
}

function safeBag(kind: string, value: Buffer, names?: Buffer): Buffer {
  return sequence(identifier(kind), tagged(CONTEXT_0, value), ...(names === undefined ? [] : [names]));
}

function attributes(friendlyName: string, keyId: Buffer): Buffer {
  const name = tagged(BMP_STRING, bigEndian(friendlyName));
  return tagged(
    SET,
    sequence(identifier(FRIENDLY_NAME), tagged(SET, name)),
    sequence(identifier(LOCAL_KEY_ID), tagged(SET, octets(keyId))),
  );
}

function encrypted(password: Buffer, content: Uint8Array, tag: number): Buffer {
  return sequence(...encryptedParts(password, content, tag));
}

/** The algorithm, and the content as it makes it. */
function encryptedParts(password: Buffer, content: Uint8Array, tag: number): [Buffer, Buffer] {
  const salt = randomBytes(8);
  const cipher = createCipheriv('des-ede3-cbc', derived(password, salt, 1, 24), derived(password, salt, 2, 8));
  const algorithm = sequence(identifier(TRIPLE_DES), sequence(octets(salt), whole(ITERATIONS)));
  return [algorithm, tagged(tag, cipher.update(content), cipher.final())];
}

function mac(password: Buffer, content: Buffer): Buffer {
  const salt = randomBytes(8);
  const digest = createHmac('sha1', derived(password, salt, 3, DIGEST))
    .update(content)
    .digest();
  return sequence(sequence(sequence(identifier(SHA1), tagged(NULL)), octets(digest)), octets(salt), whole(ITERATIONS));
}

/** RFC 7292, B.2. `purpose`: 1 a key, 2 an initial vector, 3 the key of the MAC. */
function derived(password: Buffer, salt: Buffer, purpose: 1 | 2 | 3, length: number): Buffer {
  const diversifier = Buffer.alloc(BLOCK, purpose);
  const input = Buffer.concat([filled(salt), filled(password)]);
  const parts: Buffer[] = [];
  for (let have = 0; have < length; have += DIGEST) {
    let digest = createHash('sha1').update(diversifier).update(input).digest();
    for (let round = 1; round < ITERATIONS; round++) digest = createHash('sha1').update(digest).digest();
    parts.push(digest);
    const addend = filled(digest).subarray(0, BLOCK);
    for (let at = 0; at < input.length; at += BLOCK) add(input.subarray(at, at + BLOCK), addend);
  }
  return Buffer.concat(parts).subarray(0, length);
}

/** Repeated up to a whole number of blocks. */
function filled(bytes: Buffer): Buffer {
  return Buffer.alloc(BLOCK * Math.ceil(bytes.length / BLOCK), bytes);
}

/** The block becomes the sum of both and one, without what does not fit. */
function add(block: Buffer, addend: Buffer): void {
  let carry = 1;
  for (let at = BLOCK - 1; at >= 0; at--) {
    const sum = block.readUInt8(at) + addend.readUInt8(at) + carry;
    block.writeUInt8(sum & 0xff, at);
    carry = sum >> 8;
  }
}

function passwordBytes(password: string): Buffer {
  return Buffer.concat([bigEndian(password), Buffer.alloc(2)]);
}

function bigEndian(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

function sequence(...parts: Uint8Array[]): Buffer {
  return tagged(SEQUENCE, ...parts);
}

function octets(bytes: Uint8Array): Buffer {
  return tagged(OCTET_STRING, bytes);
}

/** Of 0 to 32767. */
function whole(number: number): Buffer {
  return tagged(INTEGER_TAG, Buffer.from(number < 0x80 ? [number] : [number >> 8, number & 0xff]));
}

function identifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number);
  return tagged(OBJECT_IDENTIFIER, Buffer.from([first * 40 + second, ...others.flatMap(sevenBits)]));
}

function sevenBits(number: number): number[] {
  const bytes = [number & 0x7f];
  for (let rest = number >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

function tagged(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);
}

function lengthOf(length: number): number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return [0x80 | bytes.length, ...bytes];
}
