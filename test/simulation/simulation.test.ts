import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { isWanted, run } from '../../jobs/run-simulation.ts';
import { SIMULATION_JOB } from '../../shared/simulation/jobs.ts';
import { visit } from '../pages/page-session.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';
import { SENDING } from './fake-simulator.ts';

const ORDER = { clients: 4, minutes: 1, ramp: 1, every: 5 };
const CHANNEL = 'core_EXERCISE';
let world: PeopleWorld;

beforeEach(async () => {
  world = await peopleWorld({ CORE_STREAMING_URL: 'tls://core.example.org:8089' });
});

const step = (signal = new AbortController().signal) => run(world.deps, world.around.now, signal);
const job = async () => (await world.deps.opsJobs.list({ kind: SIMULATION_JOB }, 0, 1)).results[0];
const start = (order: object = ORDER) => world.ask('POST', '/api/ops/simulation', order);

/** The channel, whether its account is active, and its certificates in force. */
async function left(): Promise<[channel: boolean, account: boolean, certificates: number]> {
  const { identity, theCore } = world.deps;
  const account = await identity.accounts.named('svc_exercise');
  const valid = theCore.certificates.filter((each) => each.username === 'svc_exercise' && each.revokedAt === null);
  return [(await identity.groups.named(CHANNEL)) !== undefined, account?.isActive === true, valid.length];
}

/** The outcomes in the audit log, without those of other actions. */
const outcomes = () =>
  world.deps.audit.records
    .filter(({ action, phase }) => action.startsWith('simulation.') && phase !== 'intent')
    .map(({ action, result }) => [action, result]);

describe('a simulation', () => {
  it('makes its channel and its account, reports, and removes them', async () => {
    expect((await start()).status).toBe(202);
    expect(await isWanted(world.deps)).toBe(true);
    await step();
    expect(await left()).toEqual([true, true, 1]);
    const [order] = [...world.deps.simulator.started.values()];
    expect(order).toMatchObject({ places: [{ host: 'core.example.org', port: 8089 }], clients: 4, seconds: 60 });
    expect(order?.pem).toMatch(/PRIVATE KEY[^]*CERTIFICATE/);
    world.deps.simulator.reports = SENDING;
    await step();
    expect(await job()).toMatchObject({
      state: 'running',
      phase: '4 clients send',
      memory: { report: { delivered: 118 } },
    });
    world.deps.simulator.reports = { ...SENDING, phase: 'done', delivered: 120 };
    await step();
    expect(await job()).toMatchObject({ state: 'succeeded', result: { delivered: 120, lost: 0, p99_ms: 9 } });
    expect(await left()).toEqual([false, false, 0]);
    expect(await isWanted(world.deps)).toBe(false);
    expect(outcomes()).toEqual([['simulation.run', 'ok']]);
  });

  it('goes to every core node that is up', async () => {
    const node = { version: '', heardAt: '', startedAt: '', api: '', enrollment: '', clients: 0, maxClients: 9 };
    const at = (name: string, state: 'up' | 'lost') => ({
      ...node,
      node: name,
      state,
      streaming: `tls://${name}:8089`,
      memoryBytes: 1,
      memoryCapBytes: 2,
    });
    const nodes = [at('core', 'up'), at('core-2', 'lost'), at('core-3', 'up')];
    const cluster = { node: 'core', isBusUp: true, nodes };
    world.deps.theCore.stream = { clients: 0, maxClients: 5_000, thinningSeconds: 0, cluster };
    await start();
    await step();
    const [order] = [...world.deps.simulator.started.values()];
    expect(order?.places.map(({ host }) => host)).toEqual(['core', 'core-3']);
  });

  it('that loses deliveries has failed; with thinning only chat and marks count', async () => {
    for (const [thinningSeconds, state] of [
      [0, 'failed'],
      [12, 'succeeded'],
    ] as const) {
      world.deps.theCore.stream = { clients: 0, maxClients: 5_000, thinningSeconds };
      await start();
      await step();
      world.deps.simulator.reports = { ...SENDING, phase: 'done' };
      await step();
      expect((await job())?.state).toBe(state);
      world.around.now = new Date(world.around.now.getTime() + 60_000);
    }
  });

  it('connects 50 clients for a minute unless told otherwise', async () => {
    expect((await start({})).status).toBe(202);
    expect((await job())?.input).toMatchObject({ clients: 50, minutes: 1, ramp: 10, every: 5 });
  });

  it('stops on request, also asked of another process, and keeps its report', async () => {
    await start();
    await step();
    world.deps.simulator.reports = SENDING;
    expect((await world.ask('DELETE', '/api/ops/simulation')).status).toBe(202);
    await step();
    expect(world.deps.simulator.stopped).toEqual([(await job())?.id]);
    world.deps.simulator.reports = { ...SENDING, phase: 'done' };
    await step();
    expect(await job()).toMatchObject({ state: 'interrupted', error: 'Stopped early.', result: { sent: 40 } });
    expect(await left()).toEqual([false, false, 0]);
    expect(outcomes()).toEqual([
      ['simulation.stop', 'ok'],
      ['simulation.run', 'unknown'],
    ]);
    expect((await world.ask('DELETE', '/api/ops/simulation')).status).toBe(404);
  });

  it('of a process that is gone is removed by the next one, after a while', async () => {
    await start();
    await step();
    world.deps.simulator.started.clear();
    await step();
    expect((await job())?.state).toBe('running');
    world.around.now = new Date(world.around.now.getTime() + 151_000);
    await step();
    expect(await job()).toMatchObject({ state: 'failed', error: expect.stringContaining('has ended') });
    expect(await left()).toEqual([false, false, 0]);
  });

  it('whose setup was interrupted is removed', async () => {
    await start();
    const { id } = (await job()) ?? { id: '' };
    const { id: channelId } = await world.deps.identity.groups.create(CHANNEL);
    const memory = {
      stage: 'preparing',
      seen_at: world.around.now.toISOString(),
      channel_id: channelId,
      report: null,
      cpu: null,
      memory_bytes: null,
      thinning_seconds: 0,
      outcome: null,
      error: null,
    };
    await world.deps.opsJobs.change(id, { state: 'running', memory });
    await step();
    expect(await job()).toMatchObject({ state: 'failed', error: 'The setup was interrupted.' });
    expect(await left()).toEqual([false, false, 0]);
  });

  it('removes nothing that somebody else made between the request and the first step', async () => {
    await start();
    await world.deps.identity.groups.create(CHANNEL);
    await world.deps.identity.accounts.create({ username: 'svc_exercise', name: 'Own', kind: 'service' });
    await step();
    expect(await job()).toMatchObject({ state: 'failed', error: expect.stringContaining('taken') });
    expect(await left()).toEqual([true, true, 0]);
    const group = await world.deps.identity.groups.named(CHANNEL);
    await world.deps.identity.groups.delete(group?.id ?? '');
    world.around.now = new Date(world.around.now.getTime() + 60_000);
    await world.deps.opsJobs.add({
      id: crypto.randomUUID(),
      kind: SIMULATION_JOB,
      actor: 'webadmin',
      input: { ...ORDER, intent: 1 },
      now: world.around.now.toISOString(),
    });
    await step();
    expect(await job()).toMatchObject({ state: 'failed', error: expect.stringContaining('already taken') });
    expect(await left()).toEqual([false, true, 0]);
  });

  it.each(['channel', 'account', 'simulator'] as const)(
    'removes what a step that was given up makes after all: the %s',
    async (what) => {
      await start();
      const reached = Promise.withResolvers<void>();
      const goesOn = Promise.withResolvers<void>();
      const late = <A extends unknown[], R>(act: (...given: A) => Promise<R>): ((...given: A) => Promise<R>) => {
        return async (...given) => {
          reached.resolve();
          await goesOn.promise;
          return act(...given);
        };
      };
      const { identity, simulator } = world.deps;
      if (what === 'channel') identity.groups.create = late(identity.groups.create.bind(identity.groups));
      if (what === 'account') identity.accounts.create = late(identity.accounts.create.bind(identity.accounts));
      if (what === 'simulator') simulator.start = late(simulator.start.bind(simulator));
      const limit = new AbortController();
      const slow = step(limit.signal);
      await reached.promise;
      limit.abort(new Error('not done within 50 s'));
      await step();
      expect(await job()).toMatchObject({ state: 'failed', error: 'The setup was interrupted.' });
      goesOn.resolve();
      await slow;
      expect([await left(), simulator.started.size]).toEqual([[false, false, 0], 0]);
      expect(outcomes()).toHaveLength(1);
    },
  );

  it('leaves a channel that has other members, and names them, also hidden ones', async () => {
    await start();
    await step();
    const group = await world.deps.identity.groups.named(CHANNEL);
    const hidden = await world.deps.identity.accounts.create({ username: 'adm_watch', name: 'Watch' });
    await world.deps.identity.groups.addMember(group?.id ?? '', hidden.id);
    world.deps.simulator.reports = { ...SENDING, phase: 'done', delivered: 120 };
    await step();
    expect((await job())?.result).toMatchObject({ members_left: ['adm_watch'] });
    expect(await left()).toEqual([true, false, 0]);
  });

  it('waits with the removal while the identity provider does not answer', async () => {
    await start();
    await step();
    world.deps.simulator.reports = { ...SENDING, phase: 'done', delivered: 120 };
    const { groups } = world.deps.identity;
    const get = groups.get.bind(groups);
    groups.get = () => Promise.reject(new AppError('unavailable', 'The provider does not answer.'));
    await step();
    expect((await job())?.state).toBe('running');
    groups.get = get;
    await step();
    expect((await job())?.state).toBe('succeeded');
    expect(await left()).toEqual([false, false, 0]);
  });

  it.each([
    [{ clients: 1 }, 'clients'],
    [{ clients: 224, ramp: 60 }, 'clients'],
    [{ clients: 100, ramp: 4 }, 'ramp'],
    [{ minutes: 61 }, 'minutes'],
    [{ every: 0 }, 'every'],
  ])('is refused with %j', async (change, field) => {
    const answer = await start({ ...ORDER, ...change });
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining(`"${field}"`)]);
    expect(await job()).toBeUndefined();
  });

  it('is refused when the channel or the account may be of somebody else', async () => {
    const { id } = await world.deps.identity.groups.create(CHANNEL);
    expect((await start()).status).toBe(409);
    await world.deps.identity.groups.delete(id);
    await world.deps.identity.accounts.create({ username: 'svc_exercise', name: 'Own', kind: 'service' });
    expect((await start()).status).toBe(409);
    expect(world.deps.audit.records.filter(({ action }) => action === 'simulation.run')).toEqual([]);
  });
});

describe('the page of simulations', () => {
  it('starts one, shows its figures live, and stops it', async () => {
    const { page, post } = await visit(world);
    expect(await page('/simulation')).toContain('At most 223 on this machine with a position every 5 s');
    const refused = await post('/simulation', { clients: '9999', minutes: '1', ramp: '1', every: '5' });
    expect(await refused.text()).toContain('must be a whole number from 2 to 223 on this machine');
    expect((await post('/simulation', { clients: '4', minutes: '1', ramp: '1', every: '5' })).status).toBe(303);
    await step();
    world.deps.simulator.reports = SENDING;
    await step();
    const html = await page('/simulation');
    expect(html).toMatch(/id="simulation"[^>]*data-live="self" data-every="2"/);
    for (const text of ['118 of 120', 'p50 2 ms, p99 9 ms', 'Stop simulation']) expect(html).toContain(text);
    expect((await post('/simulation/stop', {})).status).toBe(303);
    world.deps.simulator.reports = { ...SENDING, phase: 'done' };
    await step();
    expect(await page('/simulation')).toContain('4 clients: 118 of 120 deliveries, p99 9 ms.');
  });

  it('gives the command where the simulator is not installed', async () => {
    world.deps.simulator.isInstalled = false;
    const { page } = await visit(world);
    expect(await page('/simulation')).toContain('./scripts/simulate.sh --url URL');
  });
});
