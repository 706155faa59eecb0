// Lists programs' accounts with their one certificate each, and deletes them.

import { AppError } from '@holdfast/kit/app-error';
import {
  isOwnServiceAccount,
  isServiceAccountName,
  isShownServiceAccount,
  kindOf,
  nameKey,
  type ServiceKind,
} from '@holdfast/kit/names';
import { audited, type Progress } from '../../audit/audited.ts';
import type { ClientKeys, CoreDevices, CoreEnrollment } from '../../core/devices/port.ts';
import type { Core } from '../../core/port.ts';
import {
  channelsOf,
  mustBeAllowed,
  mustBeAllowedKind,
  type PeopleContext,
  type PeopleDeps,
} from '../../devices/accounts.ts';
import { certificatesOf, certificatesOfUser } from '../../devices/certificates/of-user.ts';
import type { CertificateView } from '../../devices/certificates/view.ts';
import { orAsWritten, withProblem } from '../../devices/certificates/while-core-is-unavailable.ts';
import type { AdminGrants, Bundles, CertificateStore } from '../../devices/port.ts';
import type { Account } from '../../identity/port.ts';
import { changeDetail, makeChange } from '../user-change.ts';

export type ServiceAccountDeps = PeopleDeps & {
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: Pick<CoreDevices, 'roles'>;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Pick<Bundles, 'withKey'>;
  certificateStore: CertificateStore;
  settings: { KEEP_CLIENT_KEYS: boolean };
};

export type ServiceAccountContext = Omit<PeopleContext, 'deps'> & { deps: ServiceAccountDeps };

export interface ServiceAccountView {
  id: number;
  username: string;
  kind: ServiceKind;
  /** Names of channels, with their prefix. */
  groups: string[];
  is_active: boolean;
  certificate: CertificateView | null;
}

const PAGE_SIZE = 200;

/**
 * A page of them by username; the canary is left out. `count` is of all. While the core is away, as
 * it is written here.
 */
export async function listServiceAccounts(
  deps: ServiceAccountDeps,
  { page, pageSize }: { page: number; pageSize: number },
): Promise<{ results: ServiceAccountView[]; count: number; certs_error?: string }> {
  const all = (await everyAccount(deps)).filter(({ username }) => isShownServiceAccount(username));
  const accounts = all.slice((page - 1) * pageSize, page * pageSize);
  const { deps: readable, problem } = orAsWritten(deps);
  const certificates = await certificatesOf(readable, accounts);
  const results = accounts.map((account) => toServiceAccountView(deps, account, certificates.get(account.username)));
  return withProblem({ results, count: all.length }, problem());
}

/** The provider cannot be asked for those that begin so; there are few. */
async function everyAccount({ identity }: ServiceAccountDeps): Promise<Account[]> {
  const found: Account[] = [];
  for (let page = 1; ; page += 1) {
    const query = { page, pageSize: PAGE_SIZE, search: 'svc_', kinds: ['service'] } as const;
    const { results, count } = await identity.accounts.list(query);
    found.push(...results);
    if (page * PAGE_SIZE >= count) return found;
  }
}

export async function readServiceAccount(
  deps: ServiceAccountDeps,
  { id }: { id: number },
): Promise<ServiceAccountView & { certs_error?: string }> {
  const account = await serviceAccountOf(deps, id);
  if (!isShownServiceAccount(account.username)) throw unknownAccount();
  const { certs, ...rest } = await certificatesOfUser(deps, account);
  return { ...toServiceAccountView(deps, account, certs), ...rest };
}

/** The service account of that id, the canary too; `not_found` when there is none. */
export async function serviceAccountOf({ identity }: Pick<PeopleDeps, 'identity'>, id: number): Promise<Account> {
  const account = await identity.accounts.get(id);
  if (account?.kind === 'service' && isServiceAccountName(account.username)) return account;
  throw unknownAccount();
}

function unknownAccount(): AppError {
  return new AppError('not_found', 'There is no service account with this id. GET /api/service-accounts lists them.');
}

/** `certificates`: all of the account, newest first. */
export function toServiceAccountView(
  deps: Pick<PeopleDeps, 'settings'>,
  account: Account,
  certificates: readonly CertificateView[] = [],
): ServiceAccountView {
  const { id, username, isActive } = account;
  return {
    id,
    username,
    kind: kindOf(account),
    groups: channelsOf(account, deps)
      .map(({ name }) => name)
      .toSorted(),
    is_active: isActive,
    certificate: theOne(username, certificates) ?? null,
  };
}

/**
 * The newest that stands, else the newest; those that a device enrolled under the name are none of
 * it.
 */
export function theOne(username: string, certificates: readonly CertificateView[]): CertificateView | undefined {
  const own = certificates.filter(({ file }) => nameKey(file) === nameKey(`${username}.p12`));
  return own.find(({ state }) => state === 'active' || state === 'expired') ?? own[0];
}

/** Throws `conflict` for those that the stack cannot do without. */
export function mustNotBeOwn(username: string): void {
  if (!isOwnServiceAccount(username)) return;
  throw new AppError(
    'conflict',
    `${username} is one of Holdfast's own accounts: it is created at the start, and cannot be created or deleted here.`,
  );
}

/** One deed at a time for each of them; the key is nobody else's. Never nest it. */
export function oneAtATime<T>(
  deps: Pick<PeopleDeps, 'deviceLock'>,
  username: string,
  work: () => Promise<T>,
): Promise<T> {
  return deps.deviceLock(`service-account:${nameKey(username)}`, work);
}

/** Again on one that is deactivated: it heals what a broken one has left. */
export async function deleteServiceAccount(
  context: ServiceAccountContext,
  { id }: { id: number },
): Promise<ServiceAccountView> {
  const { deps, actor } = context;
  const { username } = await serviceAccountOf(deps, id);
  mustNotBeOwn(username);
  return oneAtATime(deps, username, async () => {
    await context.mustStillBeIn?.();
    const account = await serviceAccountOf(deps, id);
    mustBeAllowed(context, account);
    mustBeAllowedKind(context, kindOf(account));
    const detail = changeDetail(account, { is_active: false });
    const auditedAction = {
      actor,
      action: 'service_account.delete',
      target: username,
      detail,
      endsSignInsOf: username,
    };
    const ended = await audited(deps, auditedAction, (progress) => endServiceAccount(deps, account, progress));
    // What is done stays done when the core cannot be asked any more.
    const { certs } = await certificatesOfUser(deps, ended).catch(() => ({ certs: [] }));
    return toServiceAccountView(deps, ended, certs);
  });
}

/** Can be done again and again. */
export async function endServiceAccount(
  deps: ServiceAccountDeps,
  account: Account,
  progress: Progress,
): Promise<Account> {
  const ended = await makeChange(deps, account, { is_active: false }, progress);
  if (kindOf(account) === 'admin') await deps.adminGrants.take(account.username);
  return ended;
}
