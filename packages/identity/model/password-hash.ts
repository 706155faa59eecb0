// Hashes and checks passwords: argon2id in PHC form. Also checks two foreign forms, which the next
// sign-in replaces.

import { argon2, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

/** Parsed once, so that a damaged or hostile text costs nothing. */
export type PasswordHash =
  | { kind: 'argon2id'; memoryKib: number; passes: number; lanes: number; salt: Buffer; tag: Buffer }
  | { kind: 'pbkdf2_sha256'; iterations: number; salt: string; tag: Buffer };

const argon2Async = promisify(argon2);
const pbkdf2Async = promisify(pbkdf2);

const MEMORY_KIB = 19_456;
const PASSES = 2;
const LANES = 1;
const SALT_BYTES = 16;
const TAG_BYTES = 32;

/** Weaker ones are not worth keeping; dearer ones would let one account stop the machine. */
const ARGON2_LIMITS = { minKib: 7168, maxKib: 131_072, maxPasses: 10, maxLanes: 16, maxWork: 600_000 };
const PBKDF2_LIMITS = { least: 10_000, most: 2_000_000 };
/** Of a password in bytes of UTF-8. */
export const MAX_PASSWORD_BYTES = 1024;

const ARGON2_FORM =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;
const PBKDF2_FORM = /^pbkdf2_sha256\$(\d{1,8})\$([A-Za-z0-9./+_-]{1,64})\$([A-Za-z0-9+/]{43})=$/;

/**
 * Reads `$argon2id$...`, `argon2$argon2id$...` (Django, authentik) and
 * `pbkdf2_sha256$iterations$salt$hash`. Undefined for other forms and for costs out of bounds.
 */
export function readPasswordHash(text: string): PasswordHash | undefined {
  return readArgon2(text.startsWith('argon2$') ? text.slice('argon2'.length) : text) ?? readPbkdf2(text);
}

function readArgon2(text: string): PasswordHash | undefined {
  const [, m, t, p, salt = '', tag = ''] = ARGON2_FORM.exec(text) ?? [];
  if (m === undefined) return undefined;
  const [memoryKib, passes, lanes] = [Number(m), Number(t), Number(p)];
  const { minKib, maxKib, maxPasses, maxLanes, maxWork } = ARGON2_LIMITS;
  const within =
    memoryKib >= minKib &&
    memoryKib <= maxKib &&
    passes >= 1 &&
    passes <= maxPasses &&
    lanes >= 1 &&
    lanes <= maxLanes &&
    memoryKib * passes <= maxWork;
  if (!within) return undefined;
  return {
    kind: 'argon2id',
    memoryKib,
    passes,
    lanes,
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  };
}

function readPbkdf2(text: string): PasswordHash | undefined {
  const [, count, salt = '', tag = ''] = PBKDF2_FORM.exec(text) ?? [];
  const iterations = Number(count);
  if (!(iterations >= PBKDF2_LIMITS.least && iterations <= PBKDF2_LIMITS.most)) return undefined;
  return { kind: 'pbkdf2_sha256', iterations, salt, tag: Buffer.from(tag, 'base64') };
}

/** True when a hash of our own would be made with other parameters today. */
export function isOutdated(hash: PasswordHash): boolean {
  return (
    hash.kind !== 'argon2id' ||
    hash.memoryKib !== MEMORY_KIB ||
    hash.passes !== PASSES ||
    hash.lanes !== LANES ||
    hash.salt.length !== SALT_BYTES ||
    hash.tag.length !== TAG_BYTES
  );
}

/** A fresh hash in PHC form. Costs 19 MiB and about 16 ms of a core: only within a HashLine. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const tag = await argon2Tag(password, { memoryKib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt }, TAG_BYTES);
  const plain = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${plain(salt)}$${plain(tag)}`;
}

/** Compares in constant time. Only within a HashLine. */
export async function isPasswordOf(hash: PasswordHash, password: string): Promise<boolean> {
  const tag =
    hash.kind === 'argon2id'
      ? await argon2Tag(password, hash, hash.tag.length)
      : await pbkdf2Async(password, hash.salt, hash.iterations, hash.tag.length, 'sha256');
  return timingSafeEqual(tag, hash.tag);
}

interface Argon2Cost {
  memoryKib: number;
  passes: number;
  lanes: number;
  salt: Buffer;
}

async function argon2Tag(password: string, cost: Argon2Cost, tagLength: number): Promise<Buffer> {
  return argon2Async('argon2id', {
    message: Buffer.from(password),
    nonce: cost.salt,
    parallelism: cost.lanes,
    tagLength,
    memory: cost.memoryKib,
    passes: cost.passes,
  });
}
