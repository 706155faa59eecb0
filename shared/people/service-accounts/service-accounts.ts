// Accounts of programs with their one certificate: who they are, and how they are shown.

import { AppError } from '@holdfast/kit/app-error';
import {
  isOwnServiceAccount,
  isServiceAccountName,
  isShownServiceAccount,
  kindOf,
  nameKey,
  type ServiceKind,
} from '@holdfast/kit/names';
import type { ClientKeys, CoreDevices, CoreEnrollment } from '../../core/devices/port.ts';
import type { Core } from '../../core/port.ts';
import { channelsOf, type PeopleContext, type PeopleDeps } from '../../devices/accounts.ts';
import { certificatesOf, certificatesOfUser } from '../../devices/certificates/of-user.ts';
import type { ShownCertificate } from '../../devices/certificates/view.ts';
import { orAsWritten, withProblem } from '../../devices/certificates/while-core-is-away.ts';
import type { AdminGrants, Bundles, CertificateBook } from '../../devices/port.ts';
import type { Account } from '../../identity/port.ts';

export type ServiceAccountDeps = PeopleDeps & {
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: Pick<CoreDevices, 'roles'>;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Pick<Bundles, 'withKey'>;
  certificateBook: CertificateBook;
  settings: { KEEP_CLIENT_KEYS: boolean };
};

export type ServiceAccountContext = Omit<PeopleContext, 'deps'> & { deps: ServiceAccountDeps };

export interface ShownServiceAccount {
  id: number;
  username: string;
  kind: ServiceKind;
  /** Names of channels, with their prefix. */
  groups: string[];
  is_active: boolean;
  certificate: ShownCertificate | null;
}

const PAGE_SIZE = 200;

/** A page of them by username; the canary is left out. `count` is of all. While the core is away, as it is written here. */
export async function listServiceAccounts(
  deps: ServiceAccountDeps,
  { page, pageSize }: { page: number; pageSize: number },
): Promise<{ results: ShownServiceAccount[]; count: number; certs_error?: string }> {
  const all = (await everyAccount(deps)).filter(({ username }) => isShownServiceAccount(username));
  const accounts = all.slice((page - 1) * pageSize, page * pageSize);
  const { deps: readable, problem } = orAsWritten(deps);
  const certificates = await certificatesOf(readable, accounts);
  const results = accounts.map((account) => shownServiceAccount(deps, account, certificates.get(account.username)));
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
): Promise<ShownServiceAccount & { certs_error?: string }> {
  const account = await serviceAccountOf(deps, id);
  if (!isShownServiceAccount(account.username)) throw unknownAccount();
  const { certs, ...rest } = await certificatesOfUser(deps, account);
  return { ...shownServiceAccount(deps, account, certs), ...rest };
}

/** The service account of that id, the canary too; `not_found` when there is none. */
export async function serviceAccountOf({ identity }: Pick<PeopleDeps, 'identity'>, id: number): Promise<Account> {
  const account = await identity.accounts.get(id);
  if (account?.kind === 'service' && isServiceAccountName(account.username)) return account;
  throw unknownAccount();
}

function unknownAccount(): AppError {
  return new AppError('not_found', 'There is no service account of this id; GET /api/service-accounts lists them.');
}

/** `certificates`: all of the account, newest first. */
export function shownServiceAccount(
  deps: Pick<PeopleDeps, 'settings'>,
  account: Account,
  certificates: readonly ShownCertificate[] = [],
): ShownServiceAccount {
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

/** The newest that stands, else the newest; those that a device enrolled under the name are none of it. */
export function theOne(username: string, certificates: readonly ShownCertificate[]): ShownCertificate | undefined {
  const own = certificates.filter(({ file }) => nameKey(file) === nameKey(`${username}.p12`));
  return own.find(({ state }) => state === 'active' || state === 'expired') ?? own[0];
}

/** Throws `conflict` for those that the stack cannot do without. */
export function mustNotBeOwn(username: string): void {
  if (!isOwnServiceAccount(username)) return;
  throw new AppError(
    'conflict',
    `${username} belongs to the stack itself: it is made at the start, and cannot be made or deleted here.`,
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
