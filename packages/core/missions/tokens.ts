// Tokens that stand for a role in a mission: of a subscription, or of somebody who knew the password.

import { createHash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { readOrMakeRandom } from '@holdfast/kit/files';
import type { Mission } from '../model/mission.ts';

/** What a token of ours says; it is for the mission it was made for. */
export type TokenSays = { kind: 'subscription'; uid: string } | { kind: 'access' };

export type TokenMission = Pick<Mission, 'name' | 'guid' | 'passwordHash'>;

export interface MissionTokensOptions {
  key: Uint8Array;
  issuer: string;
}

const ALGORITHM = 'HS256';
const MOST_CHARACTERS = 4_096;

const Claims = z.object({
  sub: z.enum(['SUBSCRIPTION', 'ACCESS']),
  MISSION_GUID: z.string(),
  SUBSCRIPTION: z.string().optional(),
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

  /** Ends with the password. */
  ofAccess(mission: TokenMission): Promise<string> {
    return this.#signed(mission, 'ACCESS', randomUUID(), { PASSWORD: passwordMark(mission) });
  }

  /** Undefined for what is no token of ours, or one for another mission. */
  async read(token: string, mission: TokenMission): Promise<TokenSays | undefined> {
    const claims = await claimsOf(token, this.#options.key);
    if (claims?.MISSION_GUID !== mission.guid) return undefined;
    if (claims.sub === 'SUBSCRIPTION')
      return claims.SUBSCRIPTION === undefined ? undefined : { kind: 'subscription', uid: claims.SUBSCRIPTION };
    return claims.PASSWORD === passwordMark(mission) ? { kind: 'access' } : undefined;
  }

  #signed(mission: TokenMission, kind: 'SUBSCRIPTION' | 'ACCESS', id: string, more = {}): Promise<string> {
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
  if (token.length > MOST_CHARACTERS) return undefined;
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

/** From `{data_dir}/mission-tokens.key`, which is made when it is missing. Throws a StackError that names the file. */
export function readMissionTokenKey(dataDir: string): Uint8Array {
  const digits = readOrMakeRandom({
    path: join(dataDir, 'mission-tokens.key'),
    bytes: 32,
    remedy: 'put the old ones back; without them, delete the file, and devices subscribe to their missions anew',
  });
  return Buffer.from(digits, 'hex');
}
