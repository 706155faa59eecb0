import { expect, it, onTestFinished, vi } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { ADMIN_ROLE_GROUP } from '@holdfast/kit/names';
import { run as runJob } from '../../jobs/disconnect-unlisted.ts';
import { disconnectUnlisted, hasLoggedConnections, unlistedState } from '../../shared/devices/connections/unlisted.ts';
import { fakeJobRuns } from '../health/fake-monitored.ts';
import { peopleWorld } from '../people/fake-people.ts';

const line = (connection: string, callsign: string): string =>
  `2026-11-23-20:17:52.230 [C-0] INFO c.b.m.s.D - Set client for subscription: ${connection} to ${callsign} (uid-${callsign}) source=10.0.0.9:1`;

/** One device in the list, one that is not. */
async function world() {
  const { deps: of } = await peopleWorld();
  let nowMs = Date.parse('2026-11-23T20:18:00Z');
  const listed = of.theCore.online('ines');
  of.theCore.unlisted.add('tls:99');
  const lines = [line(listed.connection, 'INES'), line('tls:99', 'JACK')];
  const jobRuns = fakeJobRuns(() => nowMs);
  let members: number | undefined = 1;
  const deps = {
    core: of.core,
    theCore: of.theCore,
    lines,
    jobRuns,
    directory: {
      probe: async (base: string, group: string) => {
        expect([base, group]).toEqual(['core', ADMIN_ROLE_GROUP]);
        if (members === undefined) throw new AppError('unavailable', 'The directory does not answer');
        return members;
      },
    },
    logFiles: { tail: async (name: string) => (name === 'takserver-messaging' ? lines : undefined) },
    now: () => new Date(nowMs),
  };
  return {
    deps,
    listed,
    setMembers: (count: number | undefined) => (members = count),
    later: (minutes: number) => (nowMs += minutes * 60_000),
    run: async () => {
      const claim = await jobRuns.claim('disconnect-unlisted', new Date(nowMs), 'a', 60);
      const summary = await disconnectUnlisted(deps, new AbortController().signal, 0);
      if (claim !== undefined) await jobRuns.finish(claim, { summary });
      nowMs += 1_000;
      return summary;
    },
  };
}

const JACK = { connection: 'tls:99', callsign: 'JACK', uid: 'uid-JACK' };

it('ends whoever is connected without being listed, and nobody else', async () => {
  const { deps, listed, run } = await world();
  expect(await run()).toEqual({ disconnected: [JACK], left: [] });
  expect(deps.theCore.clients).toEqual([listed]);
  expect(deps.theCore.unlisted.size).toBe(0);
  expect(await unlistedState(deps)).toEqual({ disconnected: [JACK], left: [], at: new Date('2026-11-23T20:18:00Z') });
});

it('counts only whom the core did end', async () => {
  const { deps, run } = await world();
  deps.theCore.unlisted.clear();
  expect(await run()).toEqual({ disconnected: [], left: [] });
  expect((await unlistedState(deps)).at).toBeUndefined();
});

it.each([undefined, 0])('waits for the directory (%s members)', async (members) => {
  const { deps, setMembers, run } = await world();
  setMembers(members);
  expect(await run()).toEqual({ disconnected: [], left: [] });
  expect(deps.theCore.unlisted.size).toBe(1);
});

it('ends a device once, and names it when it comes back as it was', async () => {
  const { deps, later, run } = await world();
  await run();
  deps.lines.push(
    '2026-11-23-20:18:01.000 [svc] INFO c.b.m.s.D - Removed Subscription: tls:99',
    line('tls:120', 'JACK'),
  );
  deps.theCore.unlisted.add('tls:120');
  expect(await run()).toMatchObject({ disconnected: [], left: [{ ...JACK, connection: 'tls:120' }] });
  expect(deps.theCore.unlisted.size).toBe(1);
  later(30);
  expect(await run()).toMatchObject({ disconnected: [{ connection: 'tls:120' }], left: [] });
  later(61);
  expect(await unlistedState(deps)).toEqual({ disconnected: [], left: [], at: undefined });
});

it('finds nothing where the core writes no such log, and asks nobody', async () => {
  const { deps } = await world();
  const without = { ...deps, logFiles: { tail: async () => undefined } };
  deps.theCore.mood = 'down';
  expect(await hasLoggedConnections(without)).toBe(false);
  expect(await hasLoggedConnections(deps)).toBe(true);
  const refusing = { ...deps, logFiles: { tail: () => Promise.reject(new AppError('not_supported', 'no LOG_DIR')) } };
  expect(await hasLoggedConnections(refusing)).toBe(false);
  expect(await disconnectUnlisted(without, new AbortController().signal, 0)).toEqual({ disconnected: [], left: [] });
});

it('is no failure of the job while the core is away', async () => {
  const { deps } = await world();
  const core = { ...deps.core, clients: () => Promise.reject(new AppError('unavailable', 'The core is away')) };
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const summary = runJob({ ...deps, core } as never, new Date(), new AbortController().signal);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await summary).toEqual({ disconnected: [], left: [] });
});
