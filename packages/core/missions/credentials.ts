// Issues and checks mission credentials: tokens for a role, and passwords.

import { createHash, randomBytes, randomUUID, scrypt, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { readOrMakeRandom } from '@holdfast/kit/files';
import { serialize } from '@holdfast/kit/concurrency';
import type { Mission } from '../model/mission.ts';

/** What a token of ours says; it is for the mission it was made for. */
export type TokenSays = { kind: 'subscription' | 'invitation'; uid: string } | { kind: 'access' };

export type TokenMission = Pick<Mission, 'name' | 'guid' | 'passwordHash'>;

export interface MissionTokensOptions {
  key: Uint8Array;
  issuer: string;
}

const ALGORITHM = 'HS256';
const MAX_CHARACTERS = 4_096;

const Claims = z.object({
  sub: z.enum(['SUBSCRIPTION', 'INVITATION', 'ACCESS']),
  MISSION_GUID: z.string(),
  SUBSCRIPTION: z.string().optional(),
  INVITATION: z.string().optional(),
  PASSWORD: z.string().optional(),
});

/** The claims are those of a release; devices hand tokens back as they got them. */
export class MissionTokens {
  readonly #options: MissionTokensOptions;

  constructor(options: MissionTokensOptions) {
    this.#options = options;
  }

  ofSubscription(mission: TokenMission, uid: string): Promise<string> {
    return this.#signed(mission, 'SUBSCRIPTION', uid);
  }

  /** Ends with the invitation. */
  ofInvitation(mission: TokenMission, uid: string): Promise<string> {
    return this.#signed(mission, 'INVITATION', uid);
  }

  /** Ends with the password. */
  ofAccess(mission: TokenMission): Promise<string> {
    return this.#signed(mission, 'ACCESS', randomUUID(), { PASSWORD: passwordMark(mission) });
  }

  /** Undefined for what is no token of ours, or one for another mission. */
  async read(token: string, mission: TokenMission): Promise<TokenSays | undefined> {
    const claims = await claimsOf(token, this.#options.key);
    if (claims?.MISSION_GUID !== mission.guid) return undefined;
    if (claims.sub !== 'ACCESS') {
      const uid = claims[claims.sub];
      const kind = claims.sub === 'SUBSCRIPTION' ? 'subscription' : 'invitation';
      return uid === undefined ? undefined : { kind, uid };
    }
    return claims.PASSWORD === passwordMark(mission) ? { kind: 'access' } : undefined;
  }

  #signed(
    mission: TokenMission,
    kind: 'SUBSCRIPTION' | 'INVITATION' | 'ACCESS',
    id: string,
    more = {},
  ): Promise<string> {
    return new SignJWT({ [kind]: id, MISSION_NAME: mission.name, MISSION_GUID: mission.guid, ...more })
      .setProtectedHeader({ alg: ALGORITHM })
      .setJti(id)
      .setIssuedAt()
      .setSubject(kind)
      .setIssuer(this.#options.issuer)
      .sign(this.#options.key);
  }
}

async function claimsOf(token: string, key: Uint8Array): Promise<z.infer<typeof Claims> | undefined> {
  if (token.length > MAX_CHARACTERS) return undefined;
  try {
    const { payload } = await jwtVerify(token, key, { algorithms: [ALGORITHM] });
    return Claims.safeParse(payload).data;
  } catch {
    // Rule `noTokenIsNoRole`: whatever is wrong with it, it gives nothing.
    return undefined;
  }
}

/** Changes with the password and tells nothing of it. */
function passwordMark({ passwordHash }: TokenMission): string {
  return createHash('sha256')
    .update(passwordHash ?? '')
    .digest('hex')
    .slice(0, 16);
}

export function missionTokenKeyFile(dataDir: string): string {
  return join(dataDir, 'mission-tokens.key');
}

/**
 * From `{data_dir}/mission-tokens.key`, which is made when it is missing. Throws a StackError that
 * names the file.
 */
export function readMissionTokenKey(dataDir: string): Uint8Array {
  const digits = readOrMakeRandom({
    path: missionTokenKeyFile(dataDir),
    bytes: 32,
    remedy: 'restore the old ones. Without them, delete the file: devices then subscribe to their missions again',
  });
  return Buffer.from(digits, 'hex');
}

const COST = 16_384;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const MAX_PASSWORD_CHARACTERS = 256;
const FORM = /^scrypt:16384:([0-9a-f]{32}):([0-9a-f]{64})$/;

/**
 * Passwords of missions: scrypt, each with a salt of its own. A release keeps bcrypt; nothing but
 * the server reads them. One after the other: each takes some 50 ms of a thread beside the event
 * loop, and 16 MB. Ask a rate before.
 */
export class MissionPasswords {
  readonly #inLine = serialize();

  /** `scrypt:16384:<salt>:<key>`, hex. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    return `scrypt:${COST}:${salt.toString('hex')}:${(await this.#inLine(() => derived(password, salt))).toString('hex')}`;
  }

  /** False for a hash of another form too. */
  async matches(password: string, hash: string): Promise<boolean> {
    const [, salt, key] = FORM.exec(hash) ?? [];
    if (salt === undefined || key === undefined || !isPossiblePassword(password)) return false;
    const given = await this.#inLine(() => derived(password, Buffer.from(salt, 'hex')));
    return timingSafeEqual(given, Buffer.from(key, 'hex'));
  }
}

export function isPossiblePassword(password: string): boolean {
  return password.length > 0 && password.length <= MAX_PASSWORD_CHARACTERS;
}

function derived(password: string, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), salt, KEY_BYTES, { N: COST }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}
