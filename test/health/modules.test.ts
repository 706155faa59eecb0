import { describe, expect, it } from 'vitest';
import { healthModule } from '../../shared/health/module.ts';
import { HEALTH_MODULES, healthModuleOf } from '../../shared/health/modules/index.ts';
import type { Container, TlsState } from '../../shared/host/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { runningContainer } from '../host/fake-container.ts';
import { measure } from './fake-measure.ts';
import { fakeMonitored, history, mount, NOW, table, type World, world } from './fake-monitored.ts';

const verdict = async (name: string, change: (of: World) => void): Promise<[string, string]> => {
  const { status, message } = await measure(name, change);
  return [status, message];
};

describe('every health module', () => {
  it.each(HEALTH_MODULES.map(({ name }) => name))('%s is ok where all is well, and has thresholds', async (name) => {
    expect(DEFAULT_THRESHOLDS.modules[name]).toBeDefined();
    const { status, message, updated_at } = await measure(name);
    expect([status, updated_at]).toEqual(['ok', NOW.toISOString()]);
    expect(message).toMatch(/^[A-Z0-9].*\.$/);
  });

  it.each(HEALTH_MODULES)('$name says what to do in a few sentences', ({ remedy }) => {
    expect([2, 3, 4]).toContain(remedy.length);
    for (const sentence of remedy) {
      expect(sentence).toMatch(/^[A-Z][\x20-\x7e]{10,299}$/);
    }
  });

  it.each(['database', 'autovacuum', 'time'])(
    '%s is critical, with the reason, when the database is away',
    async (name) => {
      expect(await verdict(name, (of) => (of.databaseError = 'the database does not answer'))).toEqual([
        'critical',
        'the database does not answer.',
      ]);
    },
  );

  it.each(['time', 'database'])('%s is measured again within a minute of a failure', async (name) => {
    const failing = await measure(name, (of) => {
      of.databaseError = 'the database does not answer';
    });
    expect([failing.status, failing.againSeconds]).toEqual(['critical', 60]);
    expect((await measure(name)).againSeconds).toBeUndefined();
  });

  it('that hangs is critical after its time, and does not hang its caller', async () => {
    const hanging = healthModule({
      name: 'disk',
      remedy: [],
      withinMs: 30,
      read: () => new Promise<object>(() => undefined),
      findings: () => [],
      well: () => '',
    });
    const measured = await hanging.measure(fakeMonitored(world()), DEFAULT_THRESHOLDS, history());
    expect(measured).toMatchObject({ status: 'critical', message: 'No answer within 0.03 s.', data: {} });
  });
});

describe('autovacuum', () => {
  it.each([
    [1000, 1000, 'critical', 50],
    [999, 1000, 'ok', 49.97],
    [999, 0, 'ok', 100],
    [1000, 0, 'critical', 100],
    [1000, 19_000, 'warning', 5],
    [1000, 19_001, 'ok', 5],
    [1000, 5667, 'warning', 15],
    [1000, 5666, 'critical', 15],
  ])('%d dead rows beside %d live ones are %s, %f %% of both', async (dead, live, status, percent) => {
    const { status: seen, data } = await measure('autovacuum', (of) => (of.tables = [table('cot_router', dead, live)]));
    expect([seen, (data['tables'] as { dead_pct: number }[])[0]?.dead_pct]).toEqual([status, percent]);
  });

  it('follows the worst table and names it; small ones are listed and do not count', async () => {
    const tables = [table('small', 999, 1), table('bad', 2000, 2000), table('worse', 3000, 1000), table('fine', 0, 9)];
    const { message, data } = await measure('autovacuum', (of) => (of.tables = tables));
    expect(message).toMatch(/^public\.worse: 75 % of its rows are dead \(3000 of 4000\); critical from 15 %/);
    expect(data['tables']).toHaveLength(4);
  });

  it('warns of settings in force that are not those wanted', async () => {
    const [status, message] = await verdict('autovacuum', (of) => {
      of.settings = { ...of.settings, autovacuum_vacuum_scale_factor: '0.2', maintenance_work_mem: '262144kB' };
    });
    expect([status, message]).toEqual(['warning', expect.stringMatching(/scale_factor is 0\.2, not 0\.05/)]);
    expect(message).not.toContain('maintenance_work_mem');
  });

  it('warns when autovacuum is off', async () => {
    expect((await verdict('autovacuum', (of) => (of.settings = { ...of.settings, autovacuum: 'off' })))[0]).toBe(
      'warning',
    );
  });
});

describe('database', () => {
  it.each([
    [24.9e9, 'ok'],
    [25e9, 'warning'],
    [40e9, 'critical'],
  ])('of %d bytes is %s', async (bytes, status) =>
    expect((await verdict('database', (of) => (of.size.total_bytes = bytes)))[0]).toBe(status),
  );

  it('shows what is not live as overhead', async () =>
    expect((await measure('database')).data).toMatchObject({
      total_bytes: 30e6,
      live_bytes: 18e6,
      overhead_bytes: 12e6,
    }));

  it('is critical when a new connection is refused, whatever the kept ones can do', async () =>
    expect(await verdict('database', (of) => (of.connectError = 'no slots left'))).toEqual([
      'critical',
      "couldn't open a new connection: no slots left.",
    ]));

  it('is critical when a write fails, and when it takes none', async () => {
    expect(await verdict('database', (of) => (of.writeError = 'No space left on device'))).toEqual([
      'critical',
      'a test write failed: No space left on device.',
    ]);
    expect((await verdict('database', (of) => (of.server.standby = true)))[0]).toBe('critical');
  });

  it('warns of events that were not stored, with how many, when and why; a release has no list of them', async () => {
    expect((await measure('database')).data).toMatchObject({ lost_events: 0, losses: null });
    const losses = {
      events: 1234,
      began: '2026-11-22T04:00:00.000Z',
      ended: '2026-11-22T04:10:00.000Z',
      reason: 'the database took nothing',
    };
    expect(await verdict('database', (of) => (of.eventLosses = losses))).toEqual([
      'warning',
      '1234 events of the last 24 h were lost between 2026-11-22T04:00:00.000Z and 2026-11-22T04:10:00.000Z: the database took nothing.',
    ]);
    expect((await verdict('database', (of) => (of.eventLosses = 'unknown')))[0]).toBe('ok');
  });
});

describe('disk', () => {
  it('names the fullest file system', async () => {
    expect(
      await verdict('disk', (of) => (of.mounts = [mount('/', 20), mount('/data', 91), mount('/logs', 85)])),
    ).toEqual(['critical', '/data: 91 % full, 90 GB free; critical from 90 %.']);
  });

  it('counts inodes too, and finding nothing is never ok', async () => {
    expect((await verdict('disk', (of) => (of.mounts = [mount('/', 20, 85)])))[0]).toBe('warning');
    expect((await verdict('disk', (of) => (of.mounts = [])))[0]).toBe('critical');
  });
});

describe('time', () => {
  it.each([
    [4999, 'ok'],
    [5000, 'warning'],
    [-30_000, 'critical'],
  ])('%d ms between the clocks is %s', async (offset, status) =>
    expect((await verdict('time', (of) => (of.clockOffsetMs = offset)))[0]).toBe(status),
  );

  it('says which clock is ahead', async () =>
    expect((await verdict('time', (of) => (of.clockOffsetMs = -7000)))[1]).toMatch(
      /^the clock of the database: 7 s behind this machine/,
    ));
});

describe('tls', () => {
  const endpoint = { name: 'https://cot.example.org', host: 'cot.example.org', port: 443, trust: 'own' } as const;
  const state = (more: Partial<TlsState>): TlsState => ({
    reachable: true,
    trusted: true,
    error: undefined,
    expires_at: new Date(NOW.getTime() + 90 * 86_400_000).toISOString(),
    subject: 'CN=cot.example.org',
    issuer: 'CN=ca',
    ...more,
  });
  const seen = async (more: Partial<TlsState>): Promise<[string, string]> =>
    verdict('tls', (of) => {
      of.wanted.tlsEndpoints = [endpoint];
      of.tls = { [endpoint.name]: state(more) };
    });
  const inDays = (days: number): string => new Date(NOW.getTime() + days * 86_400_000).toISOString();

  it.each([
    ['unreachable', { reachable: false, trusted: false, expires_at: undefined, error: 'refused' }, 'critical'],
    ['untrusted', { trusted: false, error: 'signed by an unknown authority' }, 'critical'],
    ['expired', { trusted: false, error: 'expired on 2026-03-01', expires_at: inDays(-3) }, 'critical'],
    ['trusted but without an end', { expires_at: undefined }, 'critical'],
    ['with 7.9 days left', { expires_at: inDays(7.9) }, 'critical'],
    ['with 8 days left', { expires_at: inDays(8) }, 'warning'],
    ['with 30 days left', { expires_at: inDays(30.5) }, 'warning'],
    ['with 31 days left', { expires_at: inDays(31.5) }, 'ok'],
  ])('an endpoint that is %s is judged', async (_, more, status) => expect((await seen(more))[0]).toBe(status));

  it('says plainly that there is none', async () =>
    expect((await measure('tls')).message).toBe('No public TLS endpoints to check.'));
});

describe('identity', () => {
  it('says which release accepts our token', async () => {
    expect((await measure('identity')).message).toBe(
      'The provider (2026.8.3) accepts our token. Directory sign-in works (0 ms).',
    );
  });

  it('says who connected while the directory was away, and who still is without a name', async () => {
    const jack = { connection: 'tls:9', callsign: 'JACK', uid: 'uid-jack' };
    const of = world();
    of.unlistedRuns = [{ finishedAt: new Date('2026-11-23T20:18:07Z'), summary: { disconnected: [jack], left: [] } }];
    const module = healthModuleOf('identity');
    const measured = await module?.measure(fakeMonitored(of), DEFAULT_THRESHOLDS, history());
    expect([measured?.status, measured?.message]).toEqual([
      'ok',
      'The provider (2026.8.3) accepts our token. Directory sign-in works (0 ms). 1 device connected without channels while the directory was unavailable. Disconnected at 20:18 UTC to reconnect.',
    ]);
    of.unlistedRuns.unshift({ finishedAt: of.now, summary: { disconnected: [], left: [jack] } });
    const again = await module?.measure(fakeMonitored(of), DEFAULT_THRESHOLDS, history());
    expect([again?.status, again?.message]).toEqual(['warning', expect.stringContaining('channel: "JACK"')]);
    const failing = { ...fakeMonitored(of), jobRuns: { summaries: () => Promise.reject(new Error('down')) } };
    expect((await module?.measure(failing, DEFAULT_THRESHOLDS, history()))?.status).toBe('ok');
  });

  it.each<[string, (of: World) => void, RegExp]>([
    [
      'refuses our token',
      (of) => (of.caller = new Error('The provider refuses our token.')),
      /^The provider refuses our token\.$/,
    ],
    [
      'gives our token no rights',
      (of) => (of.caller = { username: 'alice', isSuperuser: false }),
      /^the API token belongs to alice, who may not manage accounts\.$/,
    ],
    [
      'does not let the service account in',
      (of) => (of.admins.web = new Error('The directory refuses')),
      /^The directory refuses\.$/,
    ],
    [
      'is up but empty',
      (of) => (of.admins.core = undefined),
      /^the directory answers, but its core base has no group core_ROLE_ADMIN/,
    ],
    ['has no administrator', (of) => (of.admins.core = 0), /no members/],
  ])(
    'is a warning when the provider or its directory %s, and critical after three in a row',
    async (_, change, says) => {
      const of = world();
      change(of);
      const module = healthModuleOf('identity');
      const first = await module?.measure(fakeMonitored(of), DEFAULT_THRESHOLDS, history());
      expect([first?.status, first?.message]).toEqual(['warning', expect.stringMatching(says)]);
      const third = await module?.measure(fakeMonitored(of), DEFAULT_THRESHOLDS, history({ failuresInRow: 2 }));
      expect(third?.status).toBe('critical');
    },
  );

  it('names a directory that answers in neither base once', async () => {
    const gone = new Error('The directory at ldap://127.0.0.1:3389 refused the connection');
    const [, message] = await verdict('identity', (of) => (of.admins = { core: gone, web: gone }));
    expect(message).toBe('The directory at ldap://127.0.0.1:3389 refused the connection.');
  });

  it('names the provider first: a directory without our accounts is what follows from it', async () => {
    const [, message] = await verdict('identity', (of) => {
      of.caller = new Error('The provider does not answer.');
      of.admins.core = new Error('The directory refuses');
    });
    expect(message).toMatch(/^The provider does not answer \(and 1 more\)\.$/);
  });

  it('names a directory that is empty in both bases once, and counts the other', async () => {
    const [status, message] = await verdict('identity', (of) => (of.admins = { core: undefined, web: undefined }));
    expect([status, message]).toEqual(['warning', expect.stringMatching(/core base .* \(and 1 more\)\.$/)]);
  });
});

describe('dns', () => {
  const named =
    (addresses: string[]) =>
    (of: World): void => {
      of.wanted.publicNames = ['cot.example.org'];
      of.addresses = { 'cot.example.org': addresses };
    };

  it('is ok when every address is one of this machine', async () => {
    expect((await verdict('dns', named(['192.0.2.1'])))[0]).toBe('ok');
    expect((await verdict('dns', named(['192.0.2.1', '127.0.1.1'])))[0]).toBe('ok');
  });

  it('is a note where the name leads to this machine only from itself, unless it is localhost', async () => {
    expect((await verdict('dns', named(['127.0.1.1'])))[0]).toBe('note');
    const [status] = await verdict('dns', (of) => {
      of.wanted.publicNames = ['localhost'];
      of.addresses = { localhost: ['127.0.0.1', '::1'] };
    });
    expect(status).toBe('ok');
  });

  it('warns of a name without address, and of one that leads elsewhere in part', async () => {
    expect(await verdict('dns', named([]))).toEqual(['warning', 'cot.example.org has no address (no such name).']);
    const [status, message] = await verdict('dns', named(['192.0.2.1', '203.0.113.9']));
    expect([status, message]).toEqual([
      'warning',
      expect.stringMatching(/points to 203\.0\.113\.9, .*PUBLIC_ADDRESSES/),
    ]);
  });

  it('accepts an address that PUBLIC_ADDRESSES names, in any spelling', async () => {
    const [status] = await verdict('dns', (of) => {
      named(['2001:db8::9'])(of);
      of.wanted.publicAddresses = ['2001:0db8:0:0::9'];
    });
    expect(status).toBe('ok');
  });
});

describe('containers', () => {
  const container = (more: Partial<Container>): Container => runningContainer('core', more);
  const exited = { state: 'exited', exit_code: 0 };

  it.each([
    ['running', {}, 'ok'],
    ['healthy', { health: 'healthy' as const }, 'ok'],
    ['starting', { health: 'starting' as const }, 'note'],
    ['unhealthy', { health: 'unhealthy' as const }, 'critical'],
    ['paused', { state: 'paused' }, 'warning'],
    ['created', { state: 'created' }, 'warning'],
    ['restarting', { state: 'restarting', restarts: 7 }, 'critical'],
    ['dead', { state: 'dead' }, 'critical'],
    ['one that has done its work', { ...exited, kept_running: false }, 'ok'],
    ['one that should run and has ended in peace', exited, 'critical'],
    ['one that failed', { ...exited, exit_code: 1, kept_running: false }, 'critical'],
    ['one that was ended for its memory', { ...exited, exit_code: 137, out_of_memory: true }, 'critical'],
  ])('%s', async (_, more, status) =>
    expect((await verdict('containers', (of) => (of.containers = [container(more)])))[0]).toBe(status),
  );

  it('says so without a runtime, and a runtime without containers is never ok', async () => {
    expect((await measure('containers')).message).toMatch(/^No container runtime configured/);
    expect((await verdict('containers', (of) => (of.containers = [])))[0]).toBe('critical');
  });
});

describe('config', () => {
  it('is a note that names what changed', async () =>
    expect(await verdict('config', (of) => (of.changed = ['SMTP_URL', 'modules.disk.warning']))).toEqual([
      'note',
      'SMTP_URL, modules.disk.warning changed since the start; restart to apply.',
    ]));
});
