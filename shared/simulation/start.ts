// Requests a simulation within what the machine allows, and its early end.

import { AppError, invalid } from '@holdfast/kit/app-error';
import { audited } from '../audit/audited.ts';
import type { Core } from '../core/port.ts';
import type { PeopleContext } from '../devices/accounts.ts';
import { addJob, openJob, stated } from '../jobs/ordered-jobs.ts';
import type { JobPorts, OpsJob } from '../jobs/port.ts';
import { SIMULATION_JOB, SIMULATION_RUN, type SimulationJobInput, stopLine } from './jobs.ts';
import { SIMULATION_CHANNEL, SIMULATION_GROUP, SIMULATION_USERNAME, type SimulationPorts } from './port.ts';

export interface SimulationInput {
  clients: number;
  minutes: number;
  /** Seconds. */
  ramp: number;
  every: number;
}

type StartContext = Pick<PeopleContext, 'actor'> & {
  deps: PeopleContext['deps'] & Pick<JobPorts, 'opsJobs'> & SimulationPorts & { core: Pick<Core, 'stream'> };
};

export interface SimulationBounds {
  /** With positions every so many seconds. */
  maxClients: (everySeconds: number) => number;
  minRamp: (clients: number) => number;
}

export const MAX_MINUTES = 60;
export const MAX_EVERY = 60;
export const MAX_RAMP = 600;
const MAX_CLIENTS = 2_000;
/** A small part of what a core delivers, so that real devices notice nothing. */
const DELIVERIES_PER_CPU = 5_000;
const BYTES_PER_CLIENT = 400_000;
/** A second, like devices after an outage. */
const CONNECTIONS_PER_SECOND = 20;
/** Of the free connections of the core. */
const CONNECTION_SHARE = 0.5;

/** Rejects with `not_supported` where the simulator is not installed. */
export async function simulationBounds({ simulator, core }: StartContext['deps']): Promise<SimulationBounds> {
  const [{ cpus, freeBytes }, facts] = await Promise.all([simulator.room(), core.stream().catch(() => undefined)]);
  const free = facts === undefined ? MAX_CLIENTS : CONNECTION_SHARE * (facts.maxClients - facts.clients);
  const most = Math.floor(Math.min(MAX_CLIENTS, freeBytes / BYTES_PER_CLIENT, free));
  return {
    maxClients: (every) => Math.max(2, Math.min(most, Math.floor(Math.sqrt(DELIVERIES_PER_CPU * cpus * every)))),
    minRamp: (clients) => Math.ceil(clients / CONNECTIONS_PER_SECOND),
  };
}

export async function startSimulation({ deps, actor }: StartContext, input: SimulationInput): Promise<OpsJob> {
  const { clients, minutes, ramp, every } = input;
  const bounds = await simulationBounds(deps);
  mustBeWithin('minutes', minutes, 1, MAX_MINUTES);
  mustBeWithin('every', every, 1, MAX_EVERY);
  mustBeWithin('clients', clients, 2, bounds.maxClients(every));
  mustBeWithin('ramp', ramp, bounds.minRamp(clients), MAX_RAMP);
  const open = await openJob(deps.opsJobs, SIMULATION_JOB);
  if (open === undefined) await mustBeFree(deps);
  return addJob(deps, {
    kind: SIMULATION_JOB,
    action: SIMULATION_RUN,
    actor,
    detail: { clients, minutes, ramp, every },
    inputOf: (intent): SimulationJobInput => ({ clients, minutes, ramp, every, intent }),
  });
}

/** Resolves with the job; it ends with the next steps, and removes everything. */
export async function stopSimulation({ deps, actor }: StartContext): Promise<OpsJob> {
  const job = await openJob(deps.opsJobs, SIMULATION_JOB);
  if (job === undefined) throw new AppError('not_found', 'No simulation is running.');
  await audited(deps, { actor, action: 'simulation.stop', target: job.id }, async () => {
    await deps.opsJobs.change(job.id, { log: [stated(deps.now(), stopLine(actor.username))] });
  });
  return job;
}

function mustBeWithin(path: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw invalid(path, `must be a whole number from ${least} to ${most} on this machine`);
}

/** Nothing of somebody else's is ever removed. */
async function mustBeFree({ identity }: StartContext['deps']): Promise<void> {
  const [group, account] = await Promise.all([
    identity.groups.named(SIMULATION_GROUP),
    identity.accounts.named(SIMULATION_USERNAME),
  ]);
  if (group === undefined && account?.isActive !== true) return;
  const what = group === undefined ? `The account ${SIMULATION_USERNAME}` : `The channel ${SIMULATION_CHANNEL}`;
  throw new AppError(
    'conflict',
    `${what} exists already. If an exercise left it, remove it with ./scripts/simulate.sh --clean. Otherwise rename it.`,
  );
}
