// Diagnoses why an enrollment would fail now, from the account to the signing of a certificate;
// each stage has a sentence and a remedy. The first failure is the verdict. It changes nothing and
// reveals no secret.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import type { EnrollmentAttempt } from '@holdfast/kit/core-wire';
import type { Directory, DirectoryEntry } from '@holdfast/kit/directory';
import type { CoreEnrollment } from '../../core/devices/port.ts';
import type { Core } from '../../core/port.ts';
import type { Account } from '../../identity/port.ts';
import { appExpiresOf, isChannel, isoOfSeconds } from '../../identity/rules.ts';
import { channelsOf, roleGroupsOf } from '../accounts.ts';
import { streamingPortOf, USUAL_ENROLLMENT_PORT, USUAL_STREAMING_PORT } from '../links.ts';
import type { EnrollmentToken } from '../port.ts';
import { checkReach, type ReachDeps } from './check-reach.ts';
import {
  type Attempted,
  attempted,
  type Check,
  checkOf,
  type EnrollmentStage,
  type Found,
  notTried,
  well,
  wrong,
} from './check.ts';
import { type EnrollmentDeps, enrollmentKey, keptEnrollment } from './kept.ts';

export interface DiagnosisDeps extends EnrollmentDeps {
  core: Core;
  coreEnrollment: Pick<CoreEnrollment, 'rules'>;
  directory: Pick<Directory, 'signIn'>;
  monitored: ReachDeps['monitored'];
  settings: EnrollmentDeps['settings'] & ReachDeps['settings'] & { CORE_STREAMING_URL: string | undefined };
}

/** `unknown`: the provider, our database or the CA could not be asked. */
export const ENROLLMENT_STATES = ['none', 'valid', 'expired', 'stale', 'unknown'] as const;
export type EnrollmentState = (typeof ENROLLMENT_STATES)[number];

export interface Diagnosis {
  state: EnrollmentState;
  expires_at: string | null;
  /** Of the CA that the token was made for. */
  ca_fingerprint: string | null;
  /** Why it would fail now; null with the two below when it would not. */
  reason: string | null;
  remedy: string | null;
  stage: EnrollmentStage | null;
  checks: Pick<Check, 'stage' | 'ok' | 'detail' | 'milliseconds'>[];
  notes: string[];
  /** Newest first; null when the core does not tell. */
  attempts:
    | { at: string; address: string; client_uid: string; result: EnrollmentAttempt['result']; reason: string }[]
    | null;
}

/** Together they stay below ten seconds: the first, then the second, in which the next two are. */
const WITHIN = { token: 3_000, turn: 6_500, bind: 3_000, signing: 3_000, attempts: 5_000 } as const;
const ASK_AGAIN = 'Check GET /api/health/identity, and try again when all services answer.';

/** `issueAt`: where whoever asks may have it issued. */
export async function diagnoseEnrollment(
  deps: DiagnosisDeps,
  account: Account,
  issueAt = `/api/users/${account.id}/enrollment`,
): Promise<Diagnosis> {
  const base = `/api/users/${account.id}/enrollment`;
  const [reach, { token, checks }, attempts] = await Promise.all([
    checkReach(deps, `GET ${base}/package?app=atak`),
    checkToken(deps, account, `POST ${issueAt}`),
    attempted(WITHIN.attempts, () => deps.core.enrollmentAttempts(account.username)),
  ]);
  const all = [checkAccount(deps, account), ...reach, ...checks];
  const verdict = all.find(({ ok }) => !ok);
  return {
    state: token.state,
    expires_at: token.row?.expiresAt ?? null,
    ca_fingerprint: token.row?.caFingerprint ?? null,
    reason: verdict?.detail ?? null,
    remedy: verdict?.remedy ?? null,
    stage: verdict?.stage ?? null,
    checks: all.map(({ stage, ok, detail, milliseconds }) => ({ stage, ok, detail, milliseconds })),
    notes: [...portNotes(deps, base), ...all.flatMap(({ notes }) => notes), ...attemptNotes(attempts)],
    attempts: 'value' in attempts.got ? (attempts.got.value?.map(toAttemptView) ?? null) : null,
  };
}

function checkAccount({ now }: DiagnosisDeps, { id, username, isActive, attributes }: Account): Check {
  const path = `PATCH /api/users/${id}`;
  const expires = appExpiresOf(attributes);
  const ofAccount = (found: Found): Check => ({ stage: 'account', milliseconds: 0, ...found });
  if (expires !== null && expires * 1000 <= now().getTime())
    return ofAccount(
      wrong(
        `${username} has expired (${isoOfSeconds(expires)}) and has no access.`,
        `Ask an administrator to set a new expires_at, or null for never, with is_active true (${path}).`,
      ),
    );
  if (!isActive)
    return ofAccount(
      wrong(
        `${username} is not active and has no access.`,
        `Ask an administrator to reactivate the user (${path} with is_active true).`,
      ),
    );
  return ofAccount(well(`${username} is active${expires === null ? '' : ` until ${isoOfSeconds(expires)}`}.`));
}

interface TokenState {
  state: EnrollmentState;
  row?: EnrollmentToken;
}

/** The token, and what can be tried with it. */
async function checkToken(
  deps: DiagnosisDeps,
  account: Account,
  issue: string,
): Promise<{ token: TokenState; checks: Check[] }> {
  const remedy = `Issue a new code: ${issue}, and scan it.`;
  const status = await attempted(WITHIN.token, async () => {
    const [kept, { fingerprint }] = await Promise.all([
      keptEnrollment(deps, account),
      deps.coreAuthority.certificate(),
    ]);
    return { fingerprint, ...stateOf([...kept.tokens, ...kept.rowsAlone], kept.tokens, fingerprint, deps.now()) };
  });
  const check = checkOf('token', status, ASK_AGAIN, (token) => judgeToken(token, remedy));
  const token = 'value' in status.got ? status.got.value : { state: 'unknown' as const };
  if (token.state === 'valid' && token.row !== undefined)
    return { token, checks: [check, ...(await tryToken(deps, account, token.row, remedy))] };
  const because = token.state === 'unknown' ? 'the enrollment could not be read' : 'there is no valid enrollment';
  const others = (['bind', 'groups', 'signing'] as const).map((stage) =>
    notTried(stage, because, check.remedy ?? remedy),
  );
  return { token, checks: [check, ...others] };
}

/** `rows` are all that we know of, `usable` those whose app password is there. */
function stateOf(
  rows: readonly EnrollmentToken[],
  usable: readonly EnrollmentToken[],
  fingerprint: string,
  now: Date,
): TokenState {
  const living = usable.filter(({ expiresAt }) => Date.parse(expiresAt) > now.getTime());
  const valid = living.find(({ caFingerprint }) => caFingerprint === fingerprint);
  if (valid !== undefined) return { state: 'valid', row: valid };
  const [stale] = living;
  if (stale !== undefined) return { state: 'stale', row: stale };
  const [newest] = rows.toSorted((a, b) => b.createdAt.localeCompare(a.createdAt));
  // One that was deleted before its time is as if it had never been.
  if (newest === undefined || Date.parse(newest.expiresAt) > now.getTime()) return { state: 'none' };
  return { state: 'expired', row: newest };
}

function judgeToken({ state, row, fingerprint }: TokenState & { fingerprint: string }, remedy: string): Found {
  if (state === 'valid') return well(`The enrollment is valid until ${row?.expiresAt}.`);
  if (state === 'expired') return wrong(`The enrollment expired at ${row?.expiresAt}.`, remedy);
  if (state === 'stale')
    return wrong(
      `The CA of the core has changed since this was issued (${begin(row?.caFingerprint)} then, ${begin(fingerprint)} now): a device with the old data package trusts the wrong CA.`,
      `${remedy} Open the new data package on the device first.`,
    );
  return wrong('There is no enrollment: none was issued, or it was canceled.', remedy);
}

/** Of a fingerprint, as much as a person compares. */
function begin(fingerprint = ''): string {
  return `${fingerprint.slice(0, 23)}...`;
}

/**
 * Rule `notTakenMeanwhile`: in turn with whoever issues and withdraws. A password that is taken
 * back between the directory and the core would count there as a wrong one of our own address, and
 * ten of them would keep all enrollment of ours out.
 */
async function tryToken(
  deps: DiagnosisDeps,
  account: Account,
  token: EnrollmentToken,
  remedy: string,
): Promise<Check[]> {
  const until = performance.now() + WITHIN.turn;
  const { got } = await attempted(WITHIN.turn, () =>
    deps.deviceLock(enrollmentKey(account.id), async () =>
      performance.now() < until ? tryInTurn(deps, account, token, remedy) : [],
    ),
  );
  if ('value' in got) return got.value;
  const because = `its turn did not come (${got.problem})`;
  return (['bind', 'groups', 'signing'] as const).map((stage) => notTried(stage, because, ASK_AGAIN));
}

async function tryInTurn(
  deps: DiagnosisDeps,
  account: Account,
  { identifier }: EnrollmentToken,
  remedy: string,
): Promise<Check[]> {
  const { username } = account;
  let password: string | undefined;
  const entry = await attempted(WITHIN.bind, async () => {
    password = await deps.identity.appPasswords.reveal(identifier);
    return password === undefined ? undefined : deps.directory.signIn('core', username, password);
  });
  const bind = checkOf('bind', entry, ASK_AGAIN, (found) => judgeBind(username, found, remedy));
  const groups = checkOf('groups', entry, ASK_AGAIN, (found) => judgeGroups(deps, account, found, bind.detail));
  if (!bind.ok || password === undefined) {
    // A wrong password there counts against our own address.
    const because = 'the directory did not accept the app password';
    return [bind, groups, notTried('signing', because, bind.remedy ?? remedy)].map(withoutSecret(password));
  }
  const key = password;
  const rules = await attempted(WITHIN.signing, () => askRules(deps, username, key));
  const signing = checkOf('signing', rules, SIGNING_REMEDY, (found) => found);
  return [bind, groups, signing].map(withoutSecret(key));
}

function judgeBind(username: string, entry: DirectoryEntry | undefined, remedy: string): Found {
  if (entry !== undefined) return well(`The directory accepts ${username} with the app password.`);
  return wrong(
    `The directory does not accept ${username} with the app password.`,
    `Directories cache data for up to half a minute: try again after that. If it persists, cancel the enrollment (DELETE) and start over. ${remedy}`,
  );
}

function judgeGroups(
  deps: DiagnosisDeps,
  account: Account,
  entry: DirectoryEntry | undefined,
  whyNotIn: string,
): Found {
  const { id, username } = account;
  if (entry === undefined) return wrong(`Not checked: ${whyNotIn}`, 'Solve the bind first.');
  const shown = entry.groups.filter((name) => isChannel(name, roleGroupsOf(deps)));
  const given = channelsOf(account, deps).map(({ name }) => name);
  const lost = given.filter((name) => !shown.includes(name));
  if (given.length === 0 && shown.length === 0)
    return well(`${username} is in no channel.`, [
      `${username} is in no group: the device connects, but it neither receives nor reaches anyone. Add a group (PUT /api/users/${id}/groups).`,
    ]);
  if (shown.length === 0)
    return wrong(
      `The directory shows none of the channels of ${username} (${given.join(', ')}): the device would connect and receive nothing.`,
      'Directories cache data for up to half a minute: try again after that. If it persists, see GET /api/health/identity.',
    );
  const notes = lost.length === 0 ? [] : [`The directory does not show ${lost.join(', ')} yet.`];
  return well(`The directory shows the channels ${shown.toSorted().join(', ')}.`, notes);
}

const SIGNING_REMEDY = 'Check GET /api/health and the log of the core.';

async function askRules(
  { coreEnrollment, certificateStore }: DiagnosisDeps,
  username: string,
  password: string,
): Promise<Found> {
  try {
    const rules = await coreEnrollment.rules({ username, password });
    const names = Object.entries(rules).map(([name, value]) => `${name}=${value}`);
    const canary = await certificateStore.lastCanary();
    if (canary?.signed === false)
      return wrong(
        `The core accepts ${username}, but it did not sign a test certificate at ${canary.at}: ${canary.problem ?? ''}`,
        'Read the log of the core (takserver-api.log). Holdfast requests a test certificate every minute until one is signed.',
      );
    const proof =
      canary === undefined
        ? 'It has not signed a test certificate yet.'
        : `It signed a test certificate at ${canary.at}.`;
    return well(`The core accepts ${username} and asks for ${names.join(', ')}. ${proof}`);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { code } = error;
    const says = messageOf(error).replace(/\.$/, '');
    if (code === 'locked_out' || /\b429\b|too many/i.test(says))
      return wrong(
        `The core has locked an address after too many wrong passwords: ${says}.`,
        'Wait 15 minutes. Devices behind the same router share the address, so check that none keeps trying an old password.',
      );
    if (code === 'forbidden')
      return wrong(
        `The core does not accept ${username}, though the directory does: ${says}.`,
        'Compare the LDAP settings of the core (CoreConfig.xml, auth) with those of Holdfast, and read the log of the core.',
      );
    if (code === 'unavailable') return wrong(`The core is not signing certificates: ${says}.`, SIGNING_REMEDY);
    return wrong(`The core did not report its signing rules: ${says}.`, SIGNING_REMEDY);
  }
}

/** Nobody's error message may carry it out. */
function withoutSecret(secret: string | undefined): (check: Check) => Check {
  if (secret === undefined) return (check) => check;
  return (check) => ({ ...check, detail: check.detail.replaceAll(secret, '***') });
}

function portNotes({ settings }: DiagnosisDeps, base: string): string[] {
  const enrollment = settings.CORE_ENROLLMENT_PORT;
  const streaming = streamingPortOf(settings.CORE_STREAMING_URL);
  if (enrollment === USUAL_ENROLLMENT_PORT && streaming === USUAL_STREAMING_PORT) return [];
  return [
    `This stack enrolls on port ${enrollment} and streams on port ${streaming}. ATAK's link can't contain a port: open the data package on the device first (GET ${base}/package?app=atak).`,
  ];
}

function attemptNotes({ got }: Attempted<unknown>): string[] {
  return 'problem' in got ? [`The last attempt is unknown: ${got.problem}.`] : [];
}

function toAttemptView({ at, address, clientUid, result, reason }: EnrollmentAttempt) {
  return { at, address, client_uid: clientUid, result, reason };
}
