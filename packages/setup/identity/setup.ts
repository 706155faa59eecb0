// Makes authentik ready for the stack, after each `up`: has our blueprint applied with the settings of now, brings the tokens
// of the settings into force, and gives the outpost a key of its own. Everything may be done again and again.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { writeUnlessThere } from '@holdfast/kit/files';
import { jsonLog } from '@holdfast/kit/log';
import { NotReady, type Patience, waitFor } from '@holdfast/kit/retry';
import { MINUTE_MS } from '@holdfast/kit/time';
import { leave } from '@holdfast/kit/service';
import { type AppliedBlueprint, type IdentitySetupApi, identitySetupApi } from './api.ts';
import { takeIdentitySetupHandover } from './handover.ts';

/** As compose/identity/blueprints has them. */
export const BLUEPRINT = 'holdfast/holdfast.yaml';
export const OUTPOST = 'Holdfast directory';
export const MANAGEMENT_TOKEN = 'holdfast-management';
/** Made by authentik itself at its first start. */
export const BOOTSTRAP_TOKEN = 'authentik-bootstrap-token';

/** The first start with its migrations. */
const READY_WITHIN_MS = 10 * MINUTE_MS;
const WITHIN_MS = 5 * MINUTE_MS;
/** A default blueprint that ours needs may come after it. */
const MAX_APPLICATIONS = 4;
/** A worker that was restarted meanwhile has forgotten it. */
const APPLIED_WITHIN_MS = MINUTE_MS;

export interface IdentitySetup {
  bootstrapToken: string;
  managementToken: string;
  /** Where the outpost reads its key. */
  keyFile: string;
}

export interface Surroundings extends Patience {
  /** Something was changed, in words. */
  changed: (what: string) => void;
}

/** The program of the role `identity-setup`; it ends the process. */
export async function identitySetup(environment: NodeJS.ProcessEnv): Promise<never> {
  const log = jsonLog({ role: 'identity-setup' });
  // A stop is no success: what waits for this one must not start.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => leave(log, 1));
  try {
    const { url, ...setup } = takeIdentitySetupHandover(environment);
    await setUpIdentity(identitySetupApi(url, fetch), setup, {
      now: () => performance.now(),
      pause: (ms) => delay(ms),
      waiting: (forWhat, why) => {
        log.info('identity-setup.waiting', { for: forWhat, why });
      },
      changed: (what) => log.info('identity-setup.changed', { what }),
    });
    log.info('identity-setup.done');
  } catch (error) {
    const remedy = error instanceof StackError ? { remedy: error.remedy } : {};
    log.error('identity-setup.failed', { error: messageOf(error), ...remedy });
    leave(log, 1);
  }
  leave(log, 0);
}

export async function setUpIdentity(
  api: IdentitySetupApi,
  setup: IdentitySetup,
  surroundings: Surroundings,
): Promise<void> {
  const ready = { what: 'answer of authentik', withinMs: READY_WITHIN_MS, remedy: SERVER_REMEDY };
  await waitFor(surroundings, ready, () => api.ready());
  const accepted = { what: 'token that authentik accepts', withinMs: WITHIN_MS, remedy: TOKEN_REMEDY };
  const key = await waitFor(surroundings, accepted, () => acceptedToken(api, setup));
  await applyBlueprint(api, key, surroundings);
  await ensureTokens(api, key, setup, surroundings);
  if (await api.showInitials(key)) surroundings.changed('pictures of people are no longer fetched from elsewhere');
  const outpost = { what: 'key of the LDAP outpost', withinMs: WITHIN_MS, remedy: WORKER_REMEDY };
  const outpostKey = await waitFor(surroundings, outpost, () => outpostKeyOf(api, key));
  // The outpost runs as another user, and nothing else has this volume.
  if (writeUnlessThere(setup.keyFile, outpostKey, 0o444)) surroundings.changed('the LDAP outpost has a new key');
}

const SERVER_REMEDY = 'see what it says itself: docker compose logs --tail 50 authentik-server';
const WORKER_REMEDY = 'the log names the entry and why: docker compose logs authentik-worker';
const TOKEN_REMEDY =
  'put IDENTITY_TOKEN or IDENTITY_BOOTSTRAP_TOKEN in .env back to what it was: one at a time can be changed';

/** Either token brings the other into force, so that each can be changed in the settings, one at a time. */
async function acceptedToken(api: IdentitySetupApi, { bootstrapToken, managementToken }: IdentitySetup) {
  for (const token of [bootstrapToken, managementToken]) {
    const holder = await api.holderOf(token);
    if (holder !== 'refused' && holder.isSuperuser) return token;
  }
  throw new NotReady('it accepts neither IDENTITY_BOOTSTRAP_TOKEN nor IDENTITY_TOKEN as of a superuser');
}

/** Each time: what it takes from settings is not in the file, whose change alone authentik would see. */
async function applyBlueprint(api: IdentitySetupApi, key: string, surroundings: Surroundings): Promise<void> {
  for (let left = MAX_APPLICATIONS - 1; ; left -= 1) {
    const after = await appliedOnce(api, key, surroundings);
    if (after.status === 'successful') return;
    if (left === 0)
      throw new StackError(`authentik could not apply the blueprint ${BLUEPRINT} (${after.status}).`, WORKER_REMEDY);
    surroundings.waiting(`blueprint ${BLUEPRINT} without fault`, `it was applied as: ${after.status}`);
    await surroundings.pause(10_000);
  }
}

async function appliedOnce(api: IdentitySetupApi, key: string, surroundings: Surroundings): Promise<AppliedBlueprint> {
  const found = { what: `blueprint ${BLUEPRINT}`, withinMs: WITHIN_MS, remedy: WORKER_REMEDY };
  const before = await waitFor(surroundings, found, () => blueprintThere(api, key));
  if (!before.enabled)
    throw new StackError(
      `The blueprint ${BLUEPRINT} is switched off in authentik.`,
      'switch it on: PATCH /api/v3/managed/blueprints/ with enabled, as akadmin',
    );
  let requestedAt = Number.NEGATIVE_INFINITY;
  const applied = { what: `applied blueprint ${BLUEPRINT}`, withinMs: WITHIN_MS, remedy: WORKER_REMEDY };
  return waitFor(surroundings, applied, async () => {
    if (surroundings.now() - requestedAt >= APPLIED_WITHIN_MS) {
      requestedAt = surroundings.now();
      await api.apply(key, before.pk);
    }
    const now = await blueprintThere(api, key);
    if (now.last_applied === before.last_applied) throw new NotReady('authentik-worker has not come to it yet');
    return now;
  });
}

async function blueprintThere(api: IdentitySetupApi, key: string): Promise<AppliedBlueprint> {
  const blueprint = await api.blueprintAt(key, BLUEPRINT);
  if (blueprint === undefined) throw new NotReady('authentik-worker has not found its file yet');
  return blueprint;
}

async function ensureTokens(
  api: IdentitySetupApi,
  key: string,
  { bootstrapToken, managementToken }: IdentitySetup,
  { changed }: Surroundings,
): Promise<void> {
  const wanted = [
    ['IDENTITY_TOKEN', MANAGEMENT_TOKEN, managementToken],
    ['IDENTITY_BOOTSTRAP_TOKEN', BOOTSTRAP_TOKEN, bootstrapToken],
  ] as const;
  for (const [variable, identifier, token] of wanted) {
    const holder = await api.holderOf(token);
    if (holder !== 'refused') continue;
    if (await api.setKey(key, identifier, token)) changed(`${variable} of the settings is in force`);
    // Nobody but identity-setup needs the other one, while it has IDENTITY_TOKEN.
    else if (identifier === MANAGEMENT_TOKEN)
      throw new StackError(`authentik has no token ${MANAGEMENT_TOKEN}.`, WORKER_REMEDY);
  }
}

async function outpostKeyOf(api: IdentitySetupApi, key: string): Promise<string> {
  const identifier = await api.outpostToken(key, OUTPOST);
  if (identifier === undefined) throw new NotReady(`there is no outpost with the name ${OUTPOST}`);
  const found = await api.keyOf(key, identifier);
  if (found === undefined) throw new NotReady('authentik-worker has not made it yet');
  return found;
}
