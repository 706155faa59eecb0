// Runs a requested simulation in steps: sets up its channel and its account, starts the simulator,
// follows it, and removes all of it. Steps can be repeated, by any process of management: whatever
// interrupts one, the next removes what was made.

import { bareHost, urlsIn } from '@holdfast/kit/addresses';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import { DAY_MS, SECOND_MS } from '@holdfast/kit/time';
import type { Core } from '../core/port.ts';
import { changeJob, endFollowed, type FollowDeps, type Followed, type Step, waitFor } from '../jobs/followed-job.ts';
import { endUnreadable, openJob } from '../jobs/ordered-jobs.ts';
import type { OpsJobChange } from '../jobs/port.ts';
import { createGroup, deleteGroup } from '../people/groups.ts';
import { createServiceAccount, keepingKeys } from '../people/service-accounts/create.ts';
import {
  deleteServiceAccount,
  type ServiceAccountContext,
  type ServiceAccountDeps,
} from '../people/service-accounts/service-accounts.ts';
import {
  conclusionOf,
  isToStop,
  readSimulationJob,
  resultOf,
  SIMULATION_JOB,
  SIMULATION_RUN,
  type SimulationJobInput,
  type SimulationMemory,
} from './jobs.ts';
import {
  isComplete,
  SIMULATION_ACCOUNT,
  SIMULATION_CHANNEL,
  SIMULATION_GROUP,
  SIMULATION_MARK,
  SIMULATION_USERNAME,
  type SimulationOrder,
  type SimulationPorts,
} from './port.ts';

export type CarryOnDeps = FollowDeps &
  ServiceAccountDeps &
  SimulationPorts & { settings: { CORE_STREAMING_URL?: string | undefined } };

interface Work extends Followed {
  deps: CarryOnDeps;
  input: SimulationJobInput;
  signal: AbortSignal;
}

const REMOVAL = "Couldn't remove the simulation yet";
const KIND = { name: 'simulation', waits: { [REMOVAL]: DAY_MS }, conclusionOf };
/** Longer than the time between two steps of a host that counts minutes. */
const LOST_MS = 150 * SECOND_MS;
const STREAM_PORT = 8089;

/**
 * Runs one step of the open job. Rejects if our own database is unavailable; the next step then
 * continues.
 */
export async function carryOnSimulation(deps: CarryOnDeps, signal: AbortSignal): Promise<Step> {
  const job = await openJob(deps.opsJobs, SIMULATION_JOB);
  if (job === undefined) return 'none';
  const read = readSimulationJob(job);
  if (read === undefined) {
    await endUnreadable(deps, job, `./scripts/simulate.sh --clean removes what it has made`);
    return 'ended';
  }
  const { input, memory } = read;
  const work = { deps, job, kind: KIND, action: SIMULATION_RUN, intent: input.intent, input, signal };
  if (memory === undefined) return begin(work);
  if (memory.stage === 'running') return follow(work, memory);
  const left = memory.stage === 'preparing' ? ending(memory, 'lost', 'The setup was interrupted.') : memory;
  return remove(work, left);
}

async function begin(work: Work): Promise<Step> {
  const { deps, job, input } = work;
  const startedAt = deps.now().toISOString();
  let memory: SimulationMemory = {
    stage: 'preparing',
    seen_at: startedAt,
    channel_id: null,
    report: null,
    cpu: null,
    memory_bytes: null,
    thinning_seconds: 0,
    outcome: null,
    error: null,
  };
  const log = [`Setting up the channel ${SIMULATION_CHANNEL} and the account ${SIMULATION_USERNAME}.`];
  await changeJob(work, { state: 'running', startedAt, memory, phase: 'Setting up', log });
  try {
    const { id: channelId } = await createGroup(contextOf(work), { name: SIMULATION_CHANNEL });
    memory = { ...memory, channel_id: channelId };
    await note(work, { memory });
    const pem = await makeAccount(contextOf(work), job.id);
    const { clients, minutes, ramp, every } = input;
    const order = { places: await placesOf(deps), pem, clients, seconds: 60 * minutes, ramp, every };
    await note(work, { phase: 'Connecting' });
    await deps.simulator.start(job.id, order);
    const seen = { ...memory, stage: 'running', seen_at: deps.now().toISOString() } as const;
    await note(work, { memory: seen, log: [`${clientsOf(work)} connect.`] });
    return 'running';
  } catch (error) {
    return remove(work, ending(memory, 'failed', messageOf(error)));
  }
}

/** Rejects if this step was given up: then another one may have removed everything already. */
async function note(work: Work, change: OpsJobChange): Promise<void> {
  work.signal.throwIfAborted();
  if (!(await changeJob(work, change))) throw new Error('The job was ended while it was set up.');
}

/** By whoever has requested it; its rights were checked then. */
function contextOf({ deps, job }: Work): ServiceAccountContext {
  return { deps, actor: { username: job.actor, address: '', requestId: '' } };
}

const clientsOf = ({ input }: Work): string => `${input.clients} clients`;

/** Resolves with the certificate of the clients and its key. */
async function makeAccount(context: ServiceAccountContext, jobId: string): Promise<string> {
  const { deps } = context;
  const attributes = { [SIMULATION_MARK]: jobId };
  const wanted = { name: SIMULATION_ACCOUNT, kind: 'data', groups: [SIMULATION_GROUP], attributes } as const;
  await createServiceAccount(keepingKeys(context), wanted);
  const made = await deps.certificateStore.made([SIMULATION_USERNAME]);
  const newest = made.toSorted((a, b) => b.issuedAt.localeCompare(a.issuedAt))[0];
  const key = newest && (await deps.clientKeys.read(newest.hash));
  if (key === undefined) throw new AppError('unavailable', `The key of ${SIMULATION_USERNAME} was not kept.`);
  return [key.keyPem, key.certificatePem, ...key.chainPem].join('\n');
}

/** Of every core node. */
async function placesOf({ core, settings }: CarryOnDeps): Promise<SimulationOrder['places']> {
  const nodes = (await core.stream())?.cluster?.nodes.filter(({ state }) => state === 'up') ?? [];
  const own = settings.CORE_STREAMING_URL;
  const urls = nodes.length > 0 ? nodes.map(({ streaming }) => streaming) : own === undefined ? [] : urlsIn(own);
  if (urls.length === 0)
    throw new AppError('unavailable', 'The stream of the core has no address. Remedy: set CORE_STREAMING_URL.');
  return urls.map((url) => {
    const { hostname, port } = new URL(url);
    return { host: bareHost(hostname), port: port === '' ? STREAM_PORT : Number(port) };
  });
}

async function follow(work: Work, memory: SimulationMemory): Promise<Step> {
  const { deps, job, input } = work;
  const now = deps.now();
  const report = await deps.simulator.report(job.id);
  if (report === undefined) {
    // Another process of management may have it.
    if (now.getTime() - Date.parse(memory.seen_at) <= LOST_MS) return 'running';
    return remove(work, ending(memory, 'lost', 'The process of management that ran the simulator has ended.'));
  }
  const seen = { ...memory, ...(await loadOf(deps, memory)), seen_at: now.toISOString(), report };
  if (report.phase === 'failed')
    return remove(work, ending(seen, 'failed', report.error ?? 'The simulator gave no reason.'));
  if (report.phase === 'done') return remove(work, ending(seen, isToStop(job) ? 'stopped' : 'done', null));
  if (isToStop(job)) await deps.simulator.stop(job.id);
  await changeJob(work, { memory: seen, ...progressOf(seen, input, Date.parse(job.startedAt ?? job.createdAt), now) });
  return 'running';
}

function progressOf(
  { report }: SimulationMemory,
  { clients, minutes, ramp }: SimulationJobInput,
  startedMs: number,
  now: Date,
): OpsJobChange {
  const isSending = report?.phase === 'sending';
  const wholeMs = (60 * minutes + ramp) * SECOND_MS;
  const progress = Math.min(0.99, Math.max(0, (now.getTime() - startedMs) / wholeMs));
  const phase = isSending ? `${clients} clients send` : `${report?.connected ?? 0} of ${clients} clients connected`;
  return { progress, phase, eta: new Date(startedMs + wholeMs).toISOString() };
}

/** Rule `loadIsExtra`: a core that does not answer loses these figures only. */
async function loadOf(
  { core, now }: { core: Pick<Core, 'stream' | 'status'>; now: () => Date },
  { cpu }: SimulationMemory,
): Promise<Partial<SimulationMemory>> {
  const [facts, status] = await Promise.all([
    core.stream().catch(() => undefined),
    core.status().catch(() => undefined),
  ]);
  const at = now();
  const seconds = facts?.cpuSeconds;
  const elapsed = cpu === null ? 0 : (at.getTime() - Date.parse(cpu.at)) / SECOND_MS;
  const share = cpu === null || seconds === undefined || elapsed <= 0 ? null : (seconds - cpu.seconds) / elapsed;
  return {
    ...(seconds === undefined
      ? {}
      : { cpu: { at: cpu?.at ?? at.toISOString(), seconds: cpu?.seconds ?? seconds, share } }),
    ...(status?.memory ? { memory_bytes: status.memory.usedBytes } : {}),
    ...(facts === undefined ? {} : { thinning_seconds: facts.thinningSeconds }),
  };
}

function ending(
  memory: SimulationMemory,
  outcome: SimulationMemory['outcome'],
  error: string | null,
): SimulationMemory {
  return { ...memory, stage: 'removing', outcome, error };
}

/**
 * Only what this job has made. The account first: its certificate must not outlive the run,
 * whatever keeps the channel.
 */
async function remove(work: Work, memory: SimulationMemory): Promise<Step> {
  const { deps, job } = work;
  const { identity } = deps;
  const context = contextOf(work);
  await changeJob(work, { memory, phase: 'Removing', eta: null });
  await deps.simulator.stop(job.id);
  try {
    const account = await identity.accounts.named(SIMULATION_USERNAME);
    if (account?.isActive === true && account.attributes[SIMULATION_MARK] === job.id)
      await deleteServiceAccount(context, { id: account.id });
    const group = memory.channel_id === null ? undefined : await identity.groups.get(memory.channel_id);
    const others = (group?.members ?? [])
      .map(({ username }) => username)
      .filter((name) => name !== SIMULATION_USERNAME);
    if (group !== undefined && others.length === 0) await deleteGroup(context, { id: group.id });
    await deps.simulator.forget(job.id);
    return await end(work, memory, others);
  } catch (error) {
    if (error instanceof AppError) return waitFor(work, REMOVAL, error.message);
    throw error;
  }
}

function end(work: Work, memory: SimulationMemory, others: string[]): Promise<Step> {
  const result = resultOf(memory, others);
  const rest = { result, phase: null, phasePercent: null };
  const left = others.length === 0 ? '' : ` The channel stays: ${others.join(', ')} are members.`;
  const done = `The account ${SIMULATION_USERNAME} and its certificate are removed.${left}`;
  const more = memory.channel_id === null ? {} : { text: done };
  if (memory.outcome === 'failed' || result === null)
    return endFollowed(work, 'failed', { ...rest, error: memory.error ?? 'It has not begun.' }, more);
  if (memory.outcome === 'stopped') return endFollowed(work, 'interrupted', { ...rest, error: 'Stopped early.' }, more);
  if (memory.outcome === 'lost')
    return endFollowed(work, 'interrupted', { ...rest, error: memory.error ?? 'Interrupted.' }, more);
  if (isComplete(result)) return endFollowed(work, 'succeeded', rest, more);
  return endFollowed(work, 'failed', { ...rest, error: 'Deliveries were lost, or connections ended.' }, more);
}
