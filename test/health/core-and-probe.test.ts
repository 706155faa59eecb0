import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PROBE_ACCOUNT } from '@holdfast/kit/names';
import { healthModuleOf } from '../../shared/health/modules/index.ts';
import { wantedOf } from '../../shared/health/wanted.ts';
import { loadSettings } from '../../shared/settings/load.ts';
import { measureIn as measure } from './fake-measure.ts';
import { type World, world } from './fake-monitored.ts';

const REMEDY =
  'management makes another within 5 minutes, or at once after a restart; otherwise see its log (DIR/logs/management.log)';

/** Its status after one, two and three of them in a row. */
async function inRow(name: string, of: World): Promise<string[]> {
  const all = await Promise.all([0, 1, 2].map((before) => measure(name, of, { failuresInRow: before })));
  return all.map(({ status }) => status);
}

describe('probe', () => {
  it('says how long an event took, and shows each stage', async () => {
    const { status, message, data } = await measure('probe', world());
    expect([status, message]).toEqual(['ok', 'A test event arrived after 0 s and was stored.']);
    expect(data).toMatchObject({ latency_seconds: 0, failed_stage: null });
    expect(data['stages']).toContainEqual({ stage: 'receive', ok: true, milliseconds: 0, problem: null });
  });

  it('is critical after two in a row when the directory loses its groups though every port still answers', async () => {
    const of = world();
    of.directory.mood = 'empty';
    expect(await inRow('probe', of)).toEqual(['warning', 'critical', 'critical']);
    const { message, data } = await measure('probe', of);
    expect(message).toMatch(/^groups: The directory accepts svc_probe but shows no groups, so people/);
    expect(data).toMatchObject({ failed_stage: 'groups', latency_seconds: null });
    expect(JSON.stringify(data)).not.toContain('"connect"');
    expect((await measure('core', of)).status).toBe('ok');
  });

  it('is critical at once without a certificate, with what to do', async () => {
    const of = world();
    of.certificateStore.made = async () => [];
    expect(await inRow('probe', of)).toEqual(['critical', 'critical', 'critical']);
    expect([(await measure('probe', of)).againSeconds, (await measure('probe', world())).againSeconds]).toEqual([
      60,
      undefined,
    ]);
    expect((await measure('probe', of)).message).toBe(
      `certificate: ${PROBE_ACCOUNT} has no certificate yet. Remedy: ${REMEDY}.`,
    );
  });

  it('is critical at once when what is sent comes out and is not stored', async () => {
    const of = world();
    of.stores = false;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const measured = measure('probe', of);
    await vi.advanceTimersByTimeAsync(10_000);
    const { status, message } = await measured;
    expect([status, message]).toEqual(['critical', expect.stringMatching(/^store: .*not in the table cot_router/)]);
  });

  it('names no remedy that the API refuses', async () => {
    const of = world();
    of.certificateStore.made = async () => [];
    const { message } = await measure('probe', of);
    const remedies = healthModuleOf('probe')?.remedy.join(' ') ?? '';
    for (const text of [message, remedies]) expect(text).not.toMatch(/issue|service-accounts/);
    expect(remedies).toMatch(/keep-service-certificates .* within 5 minutes; .* restart.*management\.log/);
  });

  it.each([
    [0.5, 'ok'],
    [2, 'warning'],
    [10.5, 'critical'],
  ])('judges the time from connecting to receiving: %s s is %s', async (seconds, status) => {
    const of = world();
    const { coreDevices } = of.core;
    of.core.coreDevices = {
      ...coreDevices,
      received: async (...args) => {
        of.now = new Date(of.now.getTime() + seconds * 1000);
        return coreDevices.received(...args);
      },
    };
    const measured = await measure('probe', of);
    expect([measured.status, measured.data['latency_seconds']]).toEqual([status, seconds]);
    if (status !== 'ok') expect(measured.message).toMatch(/^end to end: [\d.]+ s; .* from \d+ s\.$/);
  });
});

describe('core', () => {
  it('says its version and its memory', async () => {
    const { message, data } = await measure('core', world());
    expect(message).toBe(
      'Core 5.7-RELEASE-0 answers on its API, enrollment and streaming ports. Memory used: 300 MB (30 %).',
    );
    expect(data).toMatchObject({ memory_used_bytes: 300e6, memory_cap_bytes: 1e9, memory_pct: 30 });
  });

  it.each([
    [
      { clients: 1_203, maxClients: 5_000, thinningSeconds: 12 },
      1_203,
      12,
      / Thinning: each position at most every 12 s\.$/,
    ],
    [{ clients: 3, maxClients: 5_000, thinningSeconds: 0 }, 3, 0, /\(30 %\)\.$/],
    [undefined, null, null, /\(30 %\)\.$/],
  ])('reports the load of a stream that is %j', async (stream, clients, seconds, text) => {
    const of = world();
    of.core.stream = stream;
    const { message, data } = await measure('core', of);
    expect(data).toMatchObject({ clients, thinning_seconds: seconds });
    expect(message).toMatch(text);
  });

  it.each([
    ['5.8-RELEASE-69', 105, 'critical'],
    ['5.8-RELEASE-69', 106, 'ok'],
    ['5.8-RELEASE-69', null, 'ok'],
    ['5.7-RELEASE-14', 99, 'ok'],
    ['1.0.0', 3, 'ok'],
  ])('of version %s on schema %s of its database is %s', async (version, schema, status) => {
    const of = world();
    of.core.status = { ...of.core.status, version };
    of.server.schema_version = schema;
    const measured = await measure('core', of);
    expect(measured.status).toBe(status);
    if (status !== 'critical') return;
    expect(measured.message).toBe(
      "TAK Server 5.8-RELEASE-69 needs schema 106 of its database, which has 105: it can't store what it receives.",
    );
    expect(measured.remedies[0]).toContain('docker compose restart core-database');
  });

  it.each([
    [900, 'ok'],
    [901, 'warning'],
  ])('with %d of 1,000 connections is %s', async (clients, status) => {
    const of = world();
    of.core.stream = { clients, maxClients: 1_000, thinningSeconds: 0 };
    const measured = await measure('core', of);
    expect(measured.status).toBe(status);
    if (status === 'warning') expect(measured.message).toMatch(/901 of at most 1000 connections/);
  });

  it('is a warning when its API does not answer, and critical after three in a row', async () => {
    const of = world();
    of.core.mood = 'down';
    expect(await inRow('core', of)).toEqual(['warning', 'warning', 'critical']);
    expect((await measure('core', of)).message).toBe('API of the core: The core does not answer.');
  });

  it.each([
    ['enrollment', 'https://192.0.2.1:8446'],
    ['stream', 'tls://192.0.2.1:8089'],
  ])('names the %s when its port does not answer', async (endpoint, address) => {
    const of = world();
    of.tls[address] = {
      reachable: false,
      trusted: false,
      error: 'refuses connections on port 1',
      expires_at: undefined,
      subject: undefined,
      issuer: undefined,
    };
    expect(await inRow('core', of)).toEqual(['warning', 'warning', 'critical']);
    expect((await measure('core', of)).message).toBe(
      `${endpoint} of the core: ${address} refuses connections on port 1.`,
    );
  });

  it('leaves the trust in its certificates to the module tls', async () => {
    const of = world();
    for (const [name, shown] of Object.entries(of.tls)) of.tls[name] = { ...shown, trusted: false, error: 'expired' };
    expect((await measure('core', of)).status).toBe('ok');
  });

  it.each([
    ['api', 'CORE_API_URL'],
    ['enrollment', 'CORE_ENROLLMENT_URL'],
    ['streaming', 'CORE_STREAMING_URL'],
  ] as const)('is a warning that names the variable when it is not known where the %s is', async (place, variable) => {
    const of = world();
    of.wanted.coreEndpoints = { ...of.wanted.coreEndpoints, [place]: undefined };
    expect(await inRow('core', of)).toEqual(['warning', 'warning', 'warning']);
    expect((await measure('core', of)).message).toContain(`${variable} is not set`);
    if (place === 'api') expect(of.core.calls).toBe(0);
  });

  it.each([
    [{ usedBytes: 900e6, capBytes: 1e9 }, 'ok', /\(90 %\)/],
    [{ usedBytes: 901e6, capBytes: 1e9 }, 'warning', /uses 90\.1 % of its memory limit/],
    [{ usedBytes: 901e6, capBytes: null }, 'ok', /Memory used: 901 MB\.$/],
    [null, 'note', /does not report its memory use/],
  ])('judges its memory against its cap: %o is %s', async (memory, status, says) => {
    const of = world();
    of.core.status.memory = memory;
    const measured = await measure('core', of);
    expect([measured.status, measured.message]).toEqual([status, expect.stringMatching(says)]);
  });

  it('knows from the settings the host of its database, and nothing else of that URL', () => {
    const values = { CORE_DATABASE_URL: 'postgres://reader:a-long-password@[2001:db8::5]:5433/cot' };
    const { settings } = loadSettings([{ source: 'environment', values }], 'embedded');
    const wanted = wantedOf(settings, { listen: undefined, mode: 'embedded' });
    expect(wanted.databaseHost).toBe('2001:db8::5');
    expect(JSON.stringify(wanted)).not.toContain('a-long-password');
  });

  it('knows from the settings where the core is', () => {
    const values = { CORE_API_URL: 'https://cot.example.org:8443', CORE_STREAMING_URL: 'tls://cot.example.org' };
    const { settings } = loadSettings([{ source: 'environment', values }], 'embedded');
    expect(wantedOf(settings, { listen: undefined, mode: 'embedded' }).coreEndpoints).toEqual({
      api: { name: 'https://cot.example.org:8443', host: 'cot.example.org', port: 8443, trust: 'own' },
      enrollment: undefined,
      streaming: { name: 'tls://cot.example.org', host: 'cot.example.org', port: 8089, trust: 'own' },
    });
  });

  it('takes several addresses of the core as one endpoint', () => {
    const values = { CORE_ENROLLMENT_URL: 'https://core:8446,https://core-2:8446/' };
    const { settings } = loadSettings([{ source: 'environment', values }], 'embedded');
    const { coreEndpoints, tlsEndpoints } = wantedOf(settings, { listen: undefined, mode: 'embedded' });
    const expected = {
      name: 'https://core:8446, https://core-2:8446',
      host: 'core',
      port: 8446,
      trust: 'own',
      others: [{ host: 'core-2', port: 8446 }],
    };
    expect([coreEndpoints.enrollment, tlsEndpoints]).toEqual([expected, [expected]]);
  });
});
