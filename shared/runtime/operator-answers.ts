// What the management process does for whoever runs the scripts on its machine: locks, the probe, a
// password. Every change is audited, with the actor `operator`.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { nameKey, WEBADMIN } from '@holdfast/kit/names';
import type { Actor } from '../audit/port.ts';
import { concludeParts, intendParts, RESTORED_PARTS } from '../backups/restored.ts';
import { emergencySheet } from '../backups/view.ts';
import type { StageResult } from '../devices/connections/probe.ts';
import { healthModuleOf } from '../health/modules/index.ts';
import type { Measurement } from '../health/port.ts';
import type { Deps } from '../http/deps.ts';
import { REPLACED_WEBADMIN } from '../identity/bootstrap.ts';
import { setUserPassword } from '../people/create-user.ts';
import { NO_HISTORY, type Status } from '../settings/status.ts';
import { releaseLockout } from '../sign-in/tokens.ts';
import type { NodeDeps } from './node-deps.ts';

export type OperatorDeps = Omit<NodeDeps, 'authenticator' | 'hostPorts'> & Pick<Deps, 'authenticator'>;

export const OPERATOR: Actor = { username: 'operator', address: '', requestId: '' };

/** What is longer than a name or an address can be is answered like one that is not there. */
const MAX_NAME_LENGTH = 1024;

const requestSchema = z.discriminatedUnion('ask', [
  z.strictObject({ ask: z.literal('lockouts') }),
  z.strictObject({ ask: z.literal('unlock'), address: z.string().max(MAX_NAME_LENGTH) }),
  z.strictObject({ ask: z.literal('prove') }),
  z.strictObject({ ask: z.literal('health') }),
  z.strictObject({ ask: z.literal('emergency-sheet') }),
  z.strictObject({ ask: z.literal('busy') }),
  z.strictObject({
    ask: z.literal('restore-begins'),
    part: z.enum(RESTORED_PARTS),
    archive: z.string().max(MAX_NAME_LENGTH),
    made_at: z.iso.datetime(),
    targets: z.array(z.string().max(MAX_NAME_LENGTH)),
  }),
  z.strictObject({
    ask: z.literal('restore-ended'),
    part: z.enum(RESTORED_PARTS),
    ends: z.array(
      z.strictObject({
        intent: z.int(),
        target: z.string().max(MAX_NAME_LENGTH),
        result: z.enum(['ok', 'failed']),
        detail: z.string(),
      }),
    ),
  }),
  z.strictObject({ ask: z.literal('source'), name: z.string().max(100) }),
  z.strictObject({
    ask: z.literal('password'),
    username: z.string().max(MAX_NAME_LENGTH),
    password: z.string().max(4096),
    /** The settings of the next start have this password for webadmin. */
    isOfSettings: z.boolean(),
  }),
]);

export type Request = z.infer<typeof requestSchema>;

export interface ModuleView {
  module: string;
  status: Status;
  message: string;
  remedies: string[];
}

export interface Proof {
  /** True when an event went the whole way of a device. */
  passed: boolean;
  message: string;
  stages: StageResult[];
  /** What is warning or critical, without the probe. */
  complaints: ModuleView[];
  measured: number;
}

const ADDRESS = /^[\dA-Fa-f.:]{2,45}(?:%[\w.-]{1,16})?(?:\/64)?$/;

/** One request of the socket, unchecked. */
export async function answerOperator(deps: OperatorDeps, given: unknown): Promise<unknown> {
  const read = requestSchema.safeParse(given);
  if (!read.success) throw new AppError('invalid', 'This management process does not know the request.');
  return ANSWERS[read.data.ask](deps, read.data as never);
}

const ANSWERS: {
  [K in Request['ask']]: (deps: OperatorDeps, request: Extract<Request, { ask: K }>) => Promise<unknown>;
} = {
  lockouts: async ({ authenticator }) => authenticator.lockouts(),
  unlock: (deps, { address }) => unlock(deps, address),
  prove: (deps) => deps.together('operator proof', () => prove(deps)),
  health: async ({ health }) => JSON.parse(health.current('full').body) as unknown,
  'emergency-sheet': (deps) => emergencySheet(deps),
  busy,
  'restore-begins': (deps, intents) => intendParts(deps, OPERATOR, intents),
  'restore-ended': (deps, { part, ends }) => concludeParts(deps, OPERATOR, part, ends),
  source: async ({ settingsShown }, query) => settingsShown.find(({ name }) => name === query.name)?.source ?? null,
  password: givePassword,
};

/**
 * Work that a restart would interrupt. A core that reports no runs, or a stack without backups, has
 * none of that kind.
 */
async function busy({ opsJobs, coreRetention, backups }: OperatorDeps): Promise<string[]> {
  const [jobs, runs, backup] = await Promise.all([
    opsJobs.open(),
    coreRetention.runs().catch(() => undefined),
    backups.state().catch(() => undefined),
  ]);
  const isRetaining = runs?.some(({ state }) => state === 'running') === true;
  return [
    ...jobs.map(({ kind }) => kind),
    ...(isRetaining ? ['retention at the core'] : []),
    ...(backup?.running ? [backup.running.kind] : []),
  ];
}

async function unlock(deps: OperatorDeps, address: string): Promise<void> {
  if (!ADDRESS.test(address))
    throw new AppError('invalid', `'${address}' isn't an address. unlock.sh --list shows the locked ones.`);
  await releaseLockout(deps, OPERATOR, address);
}

async function prove(deps: OperatorDeps): Promise<Proof> {
  const { passed, message, stages } = await probeNow(deps);
  const others = deps.health.measurements().filter(({ module }) => module !== 'probe');
  const complaints = await Promise.all(others.filter(isComplaint).map((each) => measuredAgain(deps, each)));
  return {
    passed,
    message,
    stages,
    complaints: complaints.filter(isComplaint).map(shown),
    measured: others.length,
  };
}

function isComplaint({ status }: Measurement): boolean {
  return status === 'warning' || status === 'critical';
}

/** What was wrong while the stack came up may be well by now. */
async function measuredAgain({ monitored, thresholds }: OperatorDeps, before: Measurement): Promise<Measurement> {
  return (await healthModuleOf(before.module)?.measure(monitored, thresholds, before)) ?? before;
}

async function probeNow(deps: OperatorDeps): Promise<Pick<Proof, 'passed' | 'message' | 'stages'>> {
  const measured = await healthModuleOf('probe')?.measure(deps.monitored, deps.thresholds, NO_HISTORY);
  const data = measured?.data as { stages?: StageResult[]; failed_stage?: string | null } | undefined;
  const stages = data?.stages ?? [];
  const failed = stages.find(({ ok }) => !ok);
  const passed = stages.length > 0 && data?.failed_stage === null;
  return { passed, message: failed?.problem ?? measured?.message ?? 'There is no probe.', stages };
}

function shown({ module, status, message, remedies }: Measurement): ModuleView {
  const general = healthModuleOf(module)?.remedy ?? [];
  return { module, status, message, remedies: remedies.length > 0 ? remedies : [...general] };
}

/**
 * What of the settings webadmin has been given is remembered: else the next start would set it
 * again, whatever came since. So is what this process was started with: restarted after a crash it
 * has the old settings still, and would set the old one again.
 */
async function givePassword(
  deps: OperatorDeps,
  { username, password, isOfSettings }: Extract<Request, { ask: 'password' }>,
): Promise<{ username: string }> {
  const account = await deps.identity.accounts.named(username);
  if (account === undefined)
    throw new AppError('not_found', `There is no user '${username}'. GET /api/users lists them.`);
  const isKept = isOfSettings && nameKey(account.username) === WEBADMIN;
  const before = deps.settings.CORE_WEBADMIN_PASSWORD?.reveal();
  if (isKept && before !== undefined) await deps.appliedPasswords.remember(REPLACED_WEBADMIN, before);
  await setUserPassword({ deps, actor: OPERATOR }, { id: account.id, password });
  if (isKept) await deps.appliedPasswords.remember(WEBADMIN, password);
  return { username: account.username };
}
