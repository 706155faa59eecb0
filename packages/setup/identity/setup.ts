// Prepares authentik after each `up`: applies our blueprint with the current settings, sets the
// tokens from the settings, and gives the outpost its key. Safe to repeat.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { writeUnlessThere } from '@holdfast/kit/files';
import { jsonLog } from '@holdfast/kit/log';
import { NotReady, type Patience, waitFor } from '@holdfast/kit/retry';
import { MINUTE_MS } from '@holdfast/kit/time';
import { leave } from '@holdfast/kit/service';
import { type AppliedBlueprint, type IdentitySetupApi, identitySetupApi } from './api.ts';
import { takeIdentitySetupHandover } from './handover.ts';

/** Names from compose/identity/blueprints. */
export const BLUEPRINT = 'holdfast/holdfast.yaml';
export const OUTPOST = 'Holdfast directory';
export const MANAGEMENT_TOKEN = 'holdfast-management';
/** Created by authentik at its first start. */
export const BOOTSTRAP_TOKEN = 'authentik-bootstrap-token';

/** Long enough for the first start with its migrations. */
const READY_WITHIN_MS = 10 * MINUTE_MS;
const WITHIN_MS = 5 * MINUTE_MS;
/** Default blueprints that ours depends on may be applied later. */
const MAX_APPLICATIONS = 4;
/** Requested again after this, because a restarted worker forgets it. */
const APPLIED_WITHIN_MS = MINUTE_MS;

export interface IdentitySetup {
  bootstrapToken: string;
  managementToken: string;
  /** File from which the outpost reads its key. */
  keyFile: string;
}

export interface Surroundings extends Patience {
  /** Reports a change as text. */
  changed: (what: string) => void;
}

/** The program of the role `identity-setup`; it ends the process. */
export async function identitySetup(environment: NodeJS.ProcessEnv): Promise<never> {
  const log = jsonLog({ role: 'identity-setup' });
  // A stop counts as failure, so that dependent containers don't start.
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
  if (await api.showInitials(key)) surroundings.changed('avatars are no longer fetched from Gravatar');
  const outpost = { what: 'key of the LDAP outpost', withinMs: WITHIN_MS, remedy: WORKER_REMEDY };
  const outpostKey = await waitFor(surroundings, outpost, () => outpostKeyOf(api, key));
  // The outpost runs as another user. Nothing else mounts this volume.
  if (writeUnlessThere(setup.keyFile, outpostKey, 0o444)) surroundings.changed('the LDAP outpost has a new key');
}

const SERVER_REMEDY = 'read its log: docker compose logs --tail 50 authentik-server';
const WORKER_REMEDY = 'find the entry and the reason in the log: docker compose logs authentik-worker';
const TOKEN_REMEDY =
  'restore the old IDENTITY_TOKEN or IDENTITY_BOOTSTRAP_TOKEN in .env. Only one of them can be changed at a time';

/** Either token can set the other, so each can be changed in the settings, one at a time. */
async function acceptedToken(api: IdentitySetupApi, { bootstrapToken, managementToken }: IdentitySetup) {
  for (const token of [bootstrapToken, managementToken]) {
    const holder = await api.holderOf(token);
    if (holder !== 'refused' && holder.isSuperuser) return token;
  }
  throw new NotReady('it accepts neither IDENTITY_BOOTSTRAP_TOKEN nor IDENTITY_TOKEN of a superuser');
}

/**
 * Applied each time: authentik notices only changes of the file, not of the settings that it uses.
 */
async function applyBlueprint(api: IdentitySetupApi, key: string, surroundings: Surroundings): Promise<void> {
  for (let left = MAX_APPLICATIONS - 1; ; left -= 1) {
    const after = await appliedOnce(api, key, surroundings);
    if (after.status === 'successful') return;
    if (left === 0)
      throw new StackError(`authentik couldn't apply the blueprint ${BLUEPRINT} (${after.status}).`, WORKER_REMEDY);
    surroundings.waiting(`successful blueprint ${BLUEPRINT}`, `its status is ${after.status}`);
    await surroundings.pause(10_000);
  }
}

async function appliedOnce(api: IdentitySetupApi, key: string, surroundings: Surroundings): Promise<AppliedBlueprint> {
  const found = { what: `blueprint ${BLUEPRINT}`, withinMs: WITHIN_MS, remedy: WORKER_REMEDY };
  const before = await waitFor(surroundings, found, () => blueprintThere(api, key));
  if (!before.enabled)
    throw new StackError(
      `The blueprint ${BLUEPRINT} is disabled in authentik.`,
      'enable it as akadmin: PATCH /api/v3/managed/blueprints/ with enabled',
    );
  let requestedAt = Number.NEGATIVE_INFINITY;
  const applied = { what: `applied blueprint ${BLUEPRINT}`, withinMs: WITHIN_MS, remedy: WORKER_REMEDY };
  return waitFor(surroundings, applied, async () => {
    if (surroundings.now() - requestedAt >= APPLIED_WITHIN_MS) {
      requestedAt = surroundings.now();
      await api.apply(key, before.pk);
    }
    const now = await blueprintThere(api, key);
    if (now.last_applied === before.last_applied) throw new NotReady('authentik-worker has not applied it yet');
    return now;
  });
}

async function blueprintThere(api: IdentitySetupApi, key: string): Promise<AppliedBlueprint> {
  const blueprint = await api.blueprintAt(key, BLUEPRINT);
  if (blueprint === undefined) throw new NotReady('authentik-worker has not found the file yet');
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
    if (await api.setKey(key, identifier, token)) changed(`authentik now uses ${variable} of the settings`);
    // Only identity-setup needs the other one, and only without IDENTITY_TOKEN.
    else if (identifier === MANAGEMENT_TOKEN)
      throw new StackError(`authentik has no token ${MANAGEMENT_TOKEN}.`, WORKER_REMEDY);
  }
}

async function outpostKeyOf(api: IdentitySetupApi, key: string): Promise<string> {
  const identifier = await api.outpostToken(key, OUTPOST);
  if (identifier === undefined) throw new NotReady(`there is no outpost named ${OUTPOST}`);
  const found = await api.keyOf(key, identifier);
  if (found === undefined) throw new NotReady('authentik-worker has not created it yet');
  return found;
}
