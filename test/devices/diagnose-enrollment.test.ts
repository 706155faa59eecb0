// Why an enrollment would fail now: one verdict for each thing that can be wrong, with a remedy, and never a secret.

import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { AppError, type ErrorCode } from '@holdfast/kit/app-error';
import { diagnoseEnrollment, type Diagnosis } from '../../shared/devices/enrollment/diagnose.ts';
import { issueEnrollment } from '../../shared/devices/enrollment/issue.ts';
import type { TlsEndpoint, TlsState } from '../../shared/host/port.ts';
import type { Account } from '../../shared/identity/port.ts';
import { ACTOR, peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const MINUTE = 60_000;
const HOST = 'cot.example.org';
const OWN = '192.0.2.1';
const fine: TlsState = {
  reachable: true,
  trusted: true,
  error: undefined,
  expires_at: '2027-01-01T00:00:00.000Z',
  subject: `CN=${HOST}`,
  issuer: 'CN=Holdfast CA',
};
const unknown: TlsState = { ...fine, trusted: false, error: 'is signed by an unknown authority (CN=Holdfast CA)' };
const silent: TlsState = { ...fine, reachable: false, trusted: false, error: 'refuses connections on port 8446' };

let world: PeopleWorld;
let ada: Account;
let key: string;
/** What an endpoint shows: `host:port trust`. */
let sights: Record<string, TlsState>;

async function begin(values: Record<string, string> = {}): Promise<void> {
  world = await peopleWorld({ SERVER_ADDRESS: HOST, ...values });
  const { deps, around } = world;
  sights = {
    [`${HOST}:8446 own`]: fine,
    [`${HOST}:8446 public`]: unknown,
    '127.0.0.1:8446 own': fine,
  };
  around.addresses[HOST] = [OWN];
  deps.monitored = {
    ...deps.monitored,
    tls: { inspect: async ({ host, port, trust }: TlsEndpoint) => sights[`${host}:${port} ${trust}`] ?? silent },
  };
  const directory = { ...deps.directory };
  deps.directory.addGroup('core_Team');
  deps.directory.addPerson('ada', 'her own password').groups.push('core_Team');
  deps.directory.signIn = async (base, username, password) => {
    const isApp = base === 'core' && deps.identity.accepts(username, password);
    return directory.signIn(base, username, isApp ? 'her own password' : password);
  };
  ada = await world.account({ username: 'ada', groups: ['core_Team'] });
  ({ key } = await issueEnrollment({ deps, actor: ACTOR }, ada));
}
beforeEach(() => begin());

async function diagnosis(): Promise<Diagnosis> {
  const account = (await world.deps.identity.accounts.get(ada.id)) as Account;
  const found = await diagnoseEnrollment(world.deps, account);
  expect(JSON.stringify(found)).not.toContain(key);
  for (const { milliseconds } of found.checks) expect(milliseconds).toBeGreaterThanOrEqual(0);
  return found;
}
const okOf = ({ checks }: Diagnosis): string[] => checks.filter(({ ok }) => ok).map(({ stage }) => stage);
const detailOf = ({ checks }: Diagnosis, stage: string): string | undefined =>
  checks.find((each) => each.stage === stage)?.detail;
const unavailable = (says: string) => () => Promise.reject(new AppError('unavailable', says));
const UNSIGNED = {
  at: '2099-01-01T00:00:00.000Z',
  ok: false,
  signed: false,
  problem: '500 for POST',
  coreStartedAt: null,
};
const failing = (code: ErrorCode, text: string) => () =>
  void (world.deps.coreEnrollment.rules = () => Promise.reject(new AppError(code, text)));
const ALL = ['account', 'name', 'port', 'chain', 'token', 'bind', 'groups', 'signing'];

describe('the diagnosis of an enrollment', () => {
  it('walks every stage, and has no reason when it would work now', async () => {
    const found = await diagnosis();
    expect(found).toMatchObject({
      state: 'valid',
      expires_at: '2026-03-04T05:21:07.000Z',
      ca_fingerprint: 'CA:01',
      reason: null,
      remedy: null,
      stage: null,
      attempts: [],
    });
    expect(found.checks.map(({ stage }) => stage)).toEqual(ALL);
    expect(okOf(found)).toEqual(ALL);
    expect(found.notes).toEqual([
      `Devices do not trust the CA of this stack yet: open the data package on the device first, then the link (GET /api/users/${ada.id}/enrollment/package?app=atak).`,
    ]);
  });

  it('changes nothing by looking', async () => {
    const before = await world.deps.identity.appPasswords.list('ada');
    const written = world.deps.audit.records.length;
    world.deps.theCore.ca = 'CA:02';
    await diagnosis();
    expect(await world.deps.identity.appPasswords.list('ada')).toEqual(before);
    expect(world.deps.audit.records).toHaveLength(written);
  });

  it.each<[stage: string, what: string, RegExp, RegExp, () => unknown]>([
    [
      'account',
      'is not active',
      /ada is not active/,
      /is_active true/,
      () => world.deps.identity.accounts.change(ada.id, { isActive: false }),
    ],
    [
      'account',
      'has expired',
      /ada has expired/,
      /new expires_at/,
      () => world.deps.identity.accounts.changeAttributes(ada.id, { app_expires: 1 }),
    ],
    ['name', 'has no address', /has no address \(no such name\)/, /DNS/, () => delete world.around.addresses[HOST]],
    [
      'name',
      'leads elsewhere',
      /leads to 198\.51\.100\.7, which is not an address of this machine/,
      /PUBLIC_ADDRESSES/,
      () => {
        world.around.addresses[HOST] = ['198.51.100.7'];
        sights[`${HOST}:8446 own`] = unknown;
      },
    ],
    [
      'port',
      'refuses on an address of this machine',
      /refuses connections on port 8446/,
      /firewall/,
      () => (sights[`${HOST}:8446 own`] = silent),
    ],
    [
      'chain',
      'has expired',
      /expired on 2026-01-01/,
      /api\/health\/tls/,
      () => (sights[`${HOST}:8446 own`] = { ...unknown, error: 'expired on 2026-01-01' }),
    ],
    [
      'chain',
      'is for another name',
      /is issued to takserver, not to/,
      /SERVER_ADDRESS/,
      () => (sights[`${HOST}:8446 own`] = { ...unknown, error: `is issued to takserver, not to ${HOST}` }),
    ],
    [
      'chain',
      'is of another CA',
      /unknown authority/,
      /the CA of this core sign it/,
      () => (sights[`${HOST}:8446 own`] = unknown),
    ],
    [
      'token',
      'has ended',
      /expired at 2026-03-04T05:21:07.000Z/,
      /POST \/api\/users\/\d+\/enrollment/,
      () => (world.around.now = new Date(world.around.now.getTime() + 16 * MINUTE)),
    ],
    [
      'token',
      'is of the CA before',
      /CA:01.* then, CA:02.* now/,
      /new data package/,
      () => (world.deps.theCore.ca = 'CA:02'),
    ],
    [
      'token',
      'was deleted',
      /There is no enrollment/,
      /Issue a new code/,
      async () => {
        for (const { identifier } of await world.deps.identity.appPasswords.list('ada'))
          await world.deps.identity.appPasswords.delete(identifier);
      },
    ],
    [
      'bind',
      'is refused',
      /does not accept ada/,
      /half a minute/,
      () => void (world.deps.directory.signIn = async () => undefined),
    ],
    [
      'bind',
      'cannot be tried',
      /Couldn't check this: The directory does not answer/,
      /api\/health\/identity/,
      () => (world.deps.directory.mood = 'down'),
    ],
    [
      'groups',
      'are lost by the directory',
      /shows none of the channels of ada \(core_Team\)/,
      /api\/health\/identity/,
      () => (world.deps.directory.mood = 'empty'),
    ],
    [
      'signing',
      'is refused',
      /The core does not accept ada, though the directory does/,
      /CoreConfig/,
      failing('forbidden', 'It refuses name and password'),
    ],
    ['signing', 'is locked', /locked an address/, /15 minutes/, failing('upstream', 'The core answers 429')],
    [
      'signing',
      'is broken',
      /did not report its signing rules: It answers nonsense/,
      /log of the core/,
      failing('upstream', 'It answers nonsense'),
    ],
    [
      'signing',
      'was tried and failed',
      /did not sign a test certificate at .*: 500 for POST/,
      /every minute/,
      () => void world.deps.certificateStore.recordCanary(UNSIGNED),
    ],
    [
      'signing',
      'is away',
      /The core is not signing certificates: No answer/,
      /log of the core/,
      () => (world.deps.coreEnrollment.rules = unavailable('No answer')),
    ],
  ])('says that the %s %s, and what helps', async (stage, _, reason, remedy, breaks) => {
    await breaks();
    const found = await diagnosis();
    const expected = { stage, reason: expect.stringMatching(reason), remedy: expect.stringMatching(remedy) };
    expect(found).toMatchObject(expected);
    expect(okOf(found)).toEqual(okOf(found).filter((each) => each !== stage));
    expect(found.reason).toBe(detailOf(found, stage));
  });

  it('tells none, expired, stale and valid apart, with the end and the CA of the token', async () => {
    const brief = () => diagnosis().then((found) => [found.state, found.expires_at, found.ca_fingerprint]);
    expect(await brief()).toEqual(['valid', '2026-03-04T05:21:07.000Z', 'CA:01']);
    world.deps.theCore.ca = 'CA:02';
    expect(await brief()).toEqual(['stale', '2026-03-04T05:21:07.000Z', 'CA:01']);
    world.around.now = new Date(world.around.now.getTime() + 16 * MINUTE);
    expect(await brief()).toEqual(['expired', '2026-03-04T05:21:07.000Z', 'CA:01']);
    const [row] = await world.deps.enrollmentTokens.of(ada.id);
    await world.deps.enrollmentTokens.remove(row?.identifier ?? '');
    expect(await brief()).toEqual(['none', null, null]);
  });

  it('never binds nor asks the core where there is no valid token, so that nothing is locked', async () => {
    world.deps.theCore.ca = 'CA:02';
    const requests: string[] = [];
    world.deps.directory.signIn = async () => void requests.push('directory');
    world.deps.coreEnrollment.rules = async () => (requests.push('core'), {});
    const found = await diagnosis();
    expect([requests, okOf(found)]).toEqual([[], ['account', 'name', 'port', 'chain']]);
    expect(detailOf(found, 'bind')).toBe('Not checked: there is no valid enrollment.');
  });

  it('does not ask the core with what the directory refuses', async () => {
    let requested = false;
    world.deps.directory.signIn = async () => undefined;
    world.deps.coreEnrollment.rules = async () => ((requested = true), {});
    expect([(await diagnosis()).stage, requested]).toEqual(['bind', false]);
  });

  it('says that the token could not be looked at, and calls nothing ok that it did not see', async () => {
    world.deps.identity.appPasswords.list = unavailable('The identity provider does not answer');
    const found = await diagnosis();
    expect([found.state, found.stage, okOf(found)]).toEqual(['unknown', 'token', ['account', 'name', 'port', 'chain']]);
    expect(found.reason).toBe("Couldn't check this: The identity provider does not answer.");
  });

  it('ends within ten seconds, whoever is silent', async () => {
    const silence = (): Promise<never> => new Promise(() => undefined);
    world.deps.monitored = {
      ...world.deps.monitored,
      tls: { inspect: silence },
      hostNames: { resolve: silence, ownAddresses: silence },
    };
    world.deps.coreEnrollment.rules = silence;
    world.deps.core.enrollmentAttempts = silence;
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const query = diagnosis();
    await vi.advanceTimersByTimeAsync(10_000);
    const found = await query;
    expect([found.stage, okOf(found), found.attempts]).toEqual(['name', ['account', 'token', 'bind', 'groups'], null]);
    expect(detailOf(found, 'signing')).toMatch(/no answer within 3 s/);
  });

  it('keeps a secret that an error carries to itself', async () => {
    world.deps.coreEnrollment.rules = ({ password }) =>
      Promise.reject(new AppError('upstream', `It does not know ${password}`));
    expect((await diagnosis()).reason).toBe('The core did not report its signing rules: It does not know ***.');
  });
});

describe('a note of the diagnosis', () => {
  it('is none about the package where the certificate is publicly trusted', async () => {
    sights[`${HOST}:8446 public`] = fine;
    const found = await diagnosis();
    expect([found.notes, detailOf(found, 'chain')]).toEqual([[], expect.stringMatching(/publicly trusted/)]);
  });

  it('says that a device of a user without a group receives nothing, which is no failure', async () => {
    const [group] = ada.groups;
    await world.deps.identity.groups.removeMember(group?.id ?? '', ada.id);
    world.deps.directory.people.get('ada')?.groups.splice(0);
    const { stage, notes } = await diagnosis();
    expect([stage, notes.some((note) => /neither receives nor reaches anyone.*PUT/.test(note))]).toEqual([null, true]);
  });

  it('says that the directory does not show a channel yet', async () => {
    const { id } = await world.deps.identity.groups.create('core_New');
    await world.deps.identity.groups.addMember(id, ada.id);
    expect((await diagnosis()).notes).toContain('The directory does not show core_New yet.');
  });

  it('says that the link has no room for other ports than the usual ones', async () => {
    await begin({ CORE_ENROLLMENT_PORT: '18446', CORE_STREAMING_URL: 'tls://127.0.0.1:18089' });
    sights[`${HOST}:18446 own`] = fine;
    const found = await diagnosis();
    expect([found.stage, found.notes[0]]).toEqual([
      null,
      expect.stringMatching(/port 18446 .* port 18089.*can't contain a port/),
    ]);
  });

  it('in containers looks at the proxy by the public name, where the address cannot be reached from inside', async () => {
    const proxy = { host: HOST, port: 8446, address: '172.16.64.2', trust: 'public' } as const;
    await begin({ CORE_ENROLLMENT_URL: 'https://core:8446', CORE_ENROLLMENT_PORT: '9446' });
    world.deps.monitored.wanted.tlsEndpoints = [{ name: `https://${HOST}:9446`, ...proxy }];
    world.around.addresses[HOST] = ['198.51.100.7'];
    let shown = fine;
    const inspect = async ({ host, port, address }: TlsEndpoint): Promise<TlsState> =>
      `${host}:${port} at ${address}` === `${HOST}:8446 at 172.16.64.2` ? shown : silent;
    world.deps.monitored = { ...world.deps.monitored, tls: { inspect } };
    const found = await diagnosis();
    expect(found.stage).toBeNull();
    expect(detailOf(found, 'port')).toMatch(/answers inside the stack/);
    expect(detailOf(found, 'chain')).toMatch(/issued to cot\.example\.org, and publicly trusted/);
    expect(found.notes.join(' ')).toMatch(/A container cannot see whether 198\.51\.100\.7 is this machine/);
    expect(found.notes.join(' ')).not.toMatch(/do not trust the CA/);
    shown = { ...fine, trusted: false, error: 'expired on 2026-01-01' };
    expect((await diagnosis()).stage).toBe('chain');
  });

  it('says that the address cannot be reached from here, behind a router, and looks where Holdfast enrolls', async () => {
    await begin({ CORE_ENROLLMENT_URL: 'https://127.0.0.1:8446' });
    sights[`${HOST}:8446 own`] = silent;
    world.around.addresses[HOST] = ['198.51.100.7'];
    world.deps.monitored.wanted.publicAddresses = ['198.51.100.7'];
    for (const state of [fine, { ...unknown, error: 'is issued to takserver, not to 127.0.0.1' }]) {
      sights['127.0.0.1:8446 own'] = state;
      const found = await diagnosis();
      expect([found.stage, detailOf(found, 'port')]).toEqual([null, expect.stringMatching(/CORE_ENROLLMENT_URL/)]);
      expect(found.notes).toEqual([
        expect.stringMatching(/cannot be reached from this machine.*openssl s_client -connect cot\.example\.org:8446/),
        expect.stringMatching(/could not be compared with cot\.example\.org/),
      ]);
    }
    sights['127.0.0.1:8446 own'] = { ...unknown, error: 'expired on 2026-01-01; is issued to takserver' };
    expect((await diagnosis()).stage).toBe('chain');
    sights['127.0.0.1:8446 own'] = silent;
    expect((await diagnosis()).stage).toBe('port');
  });

  it('says that an address of this machine alone is none for phones', async () => {
    await begin({ SERVER_ADDRESS: '127.0.0.1' });
    const found = await diagnosis();
    expect([found.stage, detailOf(found, 'name')]).toEqual([null, expect.stringMatching(/no name to resolve/)]);
    expect(found.notes[0]).toMatch(/leads only to this machine itself/);
  });
});

describe('the last attempts', () => {
  it('are told as the core has seen them, and null where it does not tell', async () => {
    const at = '2026-03-04T05:00:00.000Z';
    const attempt = { at, address: '192.0.2.9', username: 'ada', clientUid: 'ANDROID-1' };
    world.deps.theCore.attempts = [{ ...attempt, result: 'refused', reason: 'the directory refuses it' }];
    expect((await diagnosis()).attempts).toEqual([
      { at, address: '192.0.2.9', client_uid: 'ANDROID-1', result: 'refused', reason: 'the directory refuses it' },
    ]);
    world.deps.theCore.attempts = undefined;
    expect((await diagnosis()).attempts).toBeNull();
    world.deps.core.enrollmentAttempts = unavailable('The core does not answer');
    const found = await diagnosis();
    expect([found.attempts, found.notes.at(-1)]).toEqual([
      null,
      'The last attempt is unknown: The core does not answer.',
    ]);
  });
});
