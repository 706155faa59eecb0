// Sees to the certificates of the stack's own service accounts and of feeds: each has exactly one,
// with its key, of the CA in force, and with time left. The key stays here whatever
// KEEP_CLIENT_KEYS says: nobody else has it.

import { FEED_ACCOUNT_PREFIX, FLOWS_ACCOUNT, PROBE_ACCOUNT } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import { audited } from '../../audit/audited.ts';
import type { Audit } from '../../audit/port.ts';
import type { ClientKeys, CoreEnrollment } from '../../core/devices/port.ts';
import type { Core, CoreAuthority } from '../../core/port.ts';
import { makeOrBegin } from '../../devices/certificates/issue.ts';
import type { CertificateStore, MadeCertificate } from '../../devices/port.ts';
import type { Account, Exclusive, Identity } from '../../identity/port.ts';
import { oneAtATime } from './service-accounts.ts';

export interface ServiceCertificateDeps {
  identity: Identity;
  audit: Pick<Audit, 'intend' | 'conclude'>;
  deviceLock: Exclusive;
  core: Pick<Core, 'certificates'>;
  coreEnrollment: Pick<CoreEnrollment, 'enroll'>;
  coreAuthority: Pick<CoreAuthority, 'certificate'>;
  clientKeys: ClientKeys;
  certificateStore: CertificateStore;
  feeds: { list(): Promise<{ name: string; active: boolean }[]> };
  now: () => Date;
}

const ACCOUNTS = [FLOWS_ACCOUNT, PROBE_ACCOUNT];
const ACTOR = { username: 'keep-service-certificates', address: '', requestId: '' };
const MIN_MS = 31 * DAY_MS;

/**
 * Names those that got a new one. One that fails holds the other up no longer than it takes; then
 * it rejects.
 */
export async function keepServiceCertificates(deps: ServiceCertificateDeps): Promise<{ made: string[] }> {
  const made: string[] = [];
  const failures: unknown[] = [];
  const ofFeeds = await feedAccounts(deps).catch((error: unknown) => {
    failures.push(error);
    return [];
  });
  for (const username of [...ACCOUNTS, ...ofFeeds]) {
    try {
      if (await keepOne(deps, username)) made.push(username);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return { made };
}

/** Of the feeds that are on. */
async function feedAccounts({ feeds }: ServiceCertificateDeps): Promise<string[]> {
  return (await feeds.list()).filter(({ active }) => active).map(({ name }) => FEED_ACCOUNT_PREFIX + name);
}

/** One that is not there yet, or is deactivated, is the start's matter. */
async function keepOne(deps: ServiceCertificateDeps, username: string): Promise<boolean> {
  return oneAtATime(deps, username, async () => {
    const account = await deps.identity.accounts.named(username);
    if (account === undefined || !account.isActive) return false;
    const status = await statusOf(deps, username);
    const good = await goodOne(deps, status);
    const one = good ?? (await newOne(deps, account));
    // Not before there is another: a flow that runs must be able to come back.
    const others = status.filter(({ hash }) => hash !== one.hash);
    if (others.length > 0) await deps.certificateStore.wantRevoked(others, deps.now().toISOString());
    return good === undefined;
  });
}

/** Made here, neither revoked nor about to be, not expired; newest first. */
async function statusOf(
  { core, certificateStore, now }: ServiceCertificateDeps,
  username: string,
): Promise<MadeCertificate[]> {
  const [made, revocations, recorded] = await Promise.all([
    certificateStore.made([username]),
    certificateStore.revocations([username]),
    core.certificates(username),
  ]);
  const known = new Set(recorded.filter(({ revokedAt }) => revokedAt === null).map(({ hash }) => hash));
  const unwanted = new Set(revocations.map(({ hash }) => hash));
  return made
    .filter(({ name, hash, expiresAt }) => {
      return name === '' && known.has(hash) && !unwanted.has(hash) && Date.parse(expiresAt) > now().getTime();
    })
    .toSorted((a, b) => b.issuedAt.localeCompare(a.issuedAt));
}

async function goodOne(
  { coreAuthority, clientKeys, now }: ServiceCertificateDeps,
  status: readonly MadeCertificate[],
): Promise<MadeCertificate | undefined> {
  const { chainPem, expiresAt: caEnds } = await coreAuthority.certificate();
  const issuers = new Set(chainPem.map(bare));
  for (const each of status) {
    if (!hasTimeLeft(each, now()) && !endsWith(each, caEnds)) continue;
    const key = await clientKeys.read(each.hash);
    if (issuers.has(bare(key?.chainPem[0]))) return each;
  }
  return undefined;
}

/** The core says how long one lives: a new one must have time left, too. */
function hasTimeLeft({ issuedAt, expiresAt }: MadeCertificate, now: Date): boolean {
  const ends = Date.parse(expiresAt);
  const least = Math.min(MIN_MS, (ends - Date.parse(issuedAt)) / 3);
  return ends - now.getTime() > least;
}

/** No certificate outlives its CA: a new one would end no later. */
function endsWith({ expiresAt }: MadeCertificate, caEnds: string): boolean {
  return Date.parse(expiresAt) >= Date.parse(caEnds) - DAY_MS;
}

/** The certificate itself, however its lines are broken. */
function bare(pem = ''): string {
  return pem.replaceAll(/-----[^-]*-----|\s/g, '');
}

async function newOne(deps: ServiceCertificateDeps, account: Account): Promise<MadeCertificate> {
  const { username } = account;
  const detail = { username, client_uid: username };
  const auditedAction = { actor: ACTOR, action: 'service_account.certificate', target: username, detail };
  return audited(deps, auditedAction, async (progress) => {
    const { made } = await makeOrBegin(deps, account, { name: '', clientUid: username, keep: true }, progress);
    return made;
  });
}
