import { beforeEach, describe, expect, it, vi } from 'vitest';
import { PROBE_ACCOUNT, PROBE_GROUP } from '@holdfast/kit/names';
import type { CoreDevices } from '../../shared/core/devices/port.ts';
import { type ProbeDeps, probeEvent, runProbe, type StageResult } from '../../shared/devices/connections/probe.ts';
import { fakeMonitored, NOW, type World, world } from '../health/fake-monitored.ts';
import { addProbeCertificate } from './fake-probe.ts';

const ALL = ['account', 'bind', 'groups', 'certificate', 'connect', 'send', 'receive', 'store', 'end'];
const YEAR_MS = 365 * 86_400_000;
const HANGS = () => new Promise<never>(() => undefined);

let of: World;
let deps: ProbeDeps;
/** What was asked of the core, in its order: `connect`, `send`, `close` ... */
let requests: string[];
let opened: string[];
let sent: string[];

beforeEach(() => {
  of = world();
  requests = [];
  opened = [];
  sent = [];
  deps = { ...fakeMonitored(of), coreDevices: noted(of.core.coreDevices) };
});

function noted(devices: CoreDevices): CoreDevices {
  const note = (name: string): void => void requests.push(name);
  return {
    ...devices,
    async connect(hash) {
      note('connect');
      const met = await devices.connect(hash);
      if ('connection' in met) opened.push(met.connection);
      return met;
    },
    async send(connection, event) {
      note('send');
      sent.push(event);
      await devices.send(connection, event);
    },
    async received(...args) {
      note('received');
      return devices.received(...args);
    },
    async close(connection) {
      note('close');
      await devices.close(connection);
    },
  };
}

const failedOf = (results: StageResult[]): [string | undefined, string | null | undefined] => {
  expect(results.map(({ stage }) => stage)).toEqual(ALL.slice(0, results.length));
  expect(results.slice(0, -1).every(({ ok, problem }) => ok && problem === null)).toBe(true);
  const last = results.at(-1);
  return last?.ok === true ? [undefined, undefined] : [last?.stage, last?.problem];
};

/** Whatever came of it. */
async function expectNothingLeft(): Promise<void> {
  expect(await of.provider.appPasswords.list(PROBE_ACCOUNT)).toEqual([]);
  for (const connection of opened) expect(await of.core.coreDevices.answers(connection)).toBe(false);
}

describe('the probe', () => {
  it('goes through all stages, sends one event to its own channel, and leaves nothing behind', async () => {
    const results = await runProbe(deps);
    expect(results.map(({ stage, ok, problem }) => [stage, ok, problem])).toEqual(
      ALL.map((name) => [name, true, null]),
    );
    expect(requests).toEqual(['connect', 'connect', 'send', 'received', 'close', 'close']);
    expect(sent[0]).toContain(`<marti><dest group="${PROBE_GROUP.replace('core_', '')}"/></marti>`);
    await expectNothingLeft();
  });

  it('sends another event each time, of a type that is routed', async () => {
    await runProbe(deps);
    await runProbe(deps);
    expect(new Set(sent.map((event) => / uid="([0-9a-f-]{36})"/.exec(event)?.[1])).size).toBe(2);
    expect(probeEvent('u', 'c', NOW)).toMatch(/type="t-x-holdfast-probe" how="m-g" time="2026-03-04T05:06:07.000Z"/);
  });

  it.each<[string, string, (of: World) => unknown, RegExp]>([
    [
      'there is no account',
      'account',
      async (w) => w.provider.accounts.delete(await idOf(w)),
      /has no account svc_probe/,
    ],
    [
      'the account is not active',
      'account',
      async (w) => w.provider.accounts.change(await idOf(w), { isActive: false }),
      /svc_probe is not active/,
    ],
    ['the directory refuses it', 'bind', (w) => (w.provider.accepts = () => false), /refuses svc_probe/],
    ['the directory is down', 'bind', (w) => (w.directory.mood = 'down'), /directory does not answer/],
    [
      'the directory shows no groups',
      'groups',
      (w) => (w.directory.mood = 'empty'),
      /accepts svc_probe but shows no groups/,
    ],
    [
      'its group is not among them',
      'groups',
      (w) => {
        w.directory.addGroup('core_Other');
        w.directory.people.get(PROBE_ACCOUNT)?.groups.splice(0, 1, 'core_Other');
      },
      /does not show the group core_holdfast_probe/,
    ],
    ['the core is down', 'connect', (w) => (w.core.mood = 'down'), /core does not answer/],
    [
      'the core refuses the certificate',
      'connect',
      async (w) => w.core.core.revoke(w.core.certificates[0]?.hash ?? ''),
      /The stream refused svc_probe: the core ended the connection/,
    ],
  ])('stops when %s, at the stage %s, with nothing sent', async (_, stage, change, says) => {
    await change(of);
    const [failed, problem] = failedOf(await runProbe(deps));
    expect([failed, problem]).toEqual([stage, expect.stringMatching(says)]);
    expect(requests.filter((name) => name !== 'connect')).toEqual([]);
    await expectNothingLeft();
  });

  it.each<[string, RegExp, (of: World, hash: string) => unknown]>([
    [
      'it never had one',
      /has no certificate yet\. Remedy: management makes another within 5 minutes, or at once after a restart/,
      (w) => (w.certificateStore.made = async () => []),
    ],
    ['it has expired', /expired or was revoked/, (w) => (w.now = new Date(NOW.getTime() + YEAR_MS + 1))],
    [
      'its key is gone',
      /No key is stored .* Remedy: .* within 5 minutes.*management\.log/,
      async (w, hash) => w.core.clientKeys.remove(hash),
    ],
    [
      'it is to be revoked',
      /expired or was revoked/,
      async (w) => w.certificateStore.wantRevoked(await w.certificateStore.made(), NOW.toISOString()),
    ],
  ])('has no usable certificate when %s', async (_, says, change) => {
    await change(of, of.core.certificates[0]?.hash ?? '');
    const [failed, problem] = failedOf(await runProbe(deps));
    expect([failed, problem]).toEqual(['certificate', expect.stringMatching(says)]);
    expect(requests).toEqual([]);
    await expectNothingLeft();
  });

  it('takes the newest certificate whose key is kept, and no revoked one', async () => {
    const connected: string[] = [];
    const { coreDevices } = deps;
    deps.coreDevices = { ...coreDevices, connect: async (hash) => (connected.push(hash), coreDevices.connect(hash)) };
    const later = { ...of, core: of.core };
    await of.certificateStore.remember(await aged(await addProbeCertificate(later), 1));
    const keyless = await addProbeCertificate(later);
    await of.certificateStore.remember(await aged(keyless, 3));
    await of.core.clientKeys.remove(keyless);
    const wanted = await addProbeCertificate(later);
    await of.certificateStore.remember(await aged(wanted, 2));
    expect(failedOf(await runProbe(deps))).toEqual([undefined, undefined]);
    expect(connected).toEqual([wanted, wanted]);
  });

  it('closes what is open when the event does not come out, or cannot be sent', async () => {
    const { coreDevices } = deps;
    deps.coreDevices = { ...coreDevices, received: async () => undefined };
    expect(failedOf(await runProbe(deps))).toEqual(['receive', expect.stringMatching(/did not arrive/)]);
    deps.coreDevices = { ...coreDevices, send: async () => Promise.reject(new Error('The connection has ended')) };
    expect(failedOf(await runProbe(deps))).toEqual(['send', 'The connection has ended']);
    expect(opened).toHaveLength(4);
    await expectNothingLeft();
  });

  it('fails when the event comes out and is not stored, and does not judge a table that is locked', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      of.stores = false;
      const running = runProbe(deps);
      await vi.advanceTimersByTimeAsync(7_000);
      expect(failedOf(await running)).toEqual([
        'store',
        expect.stringMatching(/not in the table cot_router after 6 s/),
      ]);
    } finally {
      vi.useRealTimers();
    }
    of.stores = 'locked';
    expect(failedOf(await runProbe(deps))).toEqual([undefined, undefined]);
    await expectNothingLeft();
  });

  it('closes the one connection that was made when the other is refused', async () => {
    const { coreDevices } = deps;
    let tried = 0;
    deps.coreDevices = {
      ...coreDevices,
      connect: async (hash) => ((tried += 1) === 1 ? coreDevices.connect(hash) : { refused: 'it is full' }),
    };
    expect(failedOf(await runProbe(deps))).toEqual(['connect', expect.stringMatching(/it is full/)]);
    expect(opened).toHaveLength(1);
    await expectNothingLeft();
  });

  it('does not wait for what hangs, and closes a connection that comes too late', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { coreDevices } = deps;
      const late = Promise.withResolvers<void>();
      deps.coreDevices = {
        ...coreDevices,
        connect: async (hash) => {
          await late.promise;
          return coreDevices.connect(hash);
        },
      };
      const running = runProbe(deps);
      await vi.advanceTimersByTimeAsync(10_000);
      expect(failedOf(await running)).toEqual(['connect', expect.stringMatching(/took longer than 10 s/)]);
      late.resolve();
      await vi.waitFor(() => expect(requests.filter((name) => name === 'close')).toHaveLength(2));
      await expectNothingLeft();
    } finally {
      vi.useRealTimers();
    }
  });

  it('ends when closing hangs too', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      deps.coreDevices = { ...deps.coreDevices, received: async () => undefined, close: HANGS };
      const running = runProbe(deps);
      await vi.advanceTimersByTimeAsync(25_000);
      expect(failedOf(await running)[0]).toBe('receive');
    } finally {
      vi.useRealTimers();
    }
  });
});

async function idOf({ provider }: World): Promise<number> {
  return (await provider.accounts.named(PROBE_ACCOUNT))?.id ?? 0;
}

/** The same certificate, as if it had been issued so many days later. */
async function aged(hash: string, days: number) {
  const made = (await of.certificateStore.made()).find((each) => each.hash === hash);
  if (made === undefined) throw new Error(hash);
  return { ...made, issuedAt: new Date(NOW.getTime() + days * 86_400_000).toISOString() };
}
