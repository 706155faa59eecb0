// Clients, plugins, the state of the core and attempts to enroll, read from answers that a core may give; over real TLS.

import { describe, expect, it } from 'vitest';
import type { HttpCore } from '../../shared/core/http.ts';
import { failureOf, type OddCore, type Routes, sendJson, sendPage } from './fake-odd-core.ts';
import { withOddCore } from './with-odd-core.ts';

const ALL = 'GET /Marti/api/subscriptions/all';
const ENDPOINTS = 'GET /Marti/api/clientEndPoints';
const PLUGINS = 'GET /Marti/api/plugins/info/all';
type Response = Parameters<typeof sendPage>[0];
let server: OddCore;
let core: HttpCore;
const serve = (routes: Routes): void => server.serve(routes);

withOddCore((odd, client) => {
  server = odd;
  core = client;
});

const page =
  (status: number) =>
  (_: unknown, response: Response): void =>
    sendPage(response, status, 'A page');

function client(name: string, connection: string, input: object = {}): Record<string, unknown> {
  return {
    dn: `CN=${name}`,
    callsign: name.toUpperCase(),
    clientUid: `uid-${name}`,
    subscriptionUid: connection,
    lastReportMilliseconds: Date.parse('2026-11-22T10:00:00.000Z'),
    takClient: 'ATAK-CIV',
    takVersion: '5.3.0',
    username: name,
    groups: [
      { name: 'Ops', direction: 'IN' },
      { name: 'Ops', direction: 'OUT' },
      { name: 'core_Red', direction: 'OUT' },
    ],
    role: 'Team Member',
    team: 'Cyan',
    ipAddress: ' 192.0.2.7',
    ...input,
  };
}

describe('clients', () => {
  it('are those on the stream, since when the core says they connected', async () => {
    const connected = { uid: 'uid-ada', username: 'ada', lastStatus: 'Connected' };
    serve({
      [ALL]: [
        client('ada', 'tls:1'),
        { subscriptionUid: 'tls:2', clientUid: null, groups: null, lastReportMilliseconds: 0 },
      ],
      [ENDPOINTS]: [
        { ...connected, lastEventTime: '2026-11-22T09:00:00.5Z' },
        { ...connected, callsign: 'before', lastEventTime: '2026-11-22T08:00:00.5Z' },
        { ...connected, username: 'ben', lastEventTime: '2026-11-22T09:30:00.5Z' },
        { ...connected, lastStatus: 'Disconnected', lastEventTime: '2026-11-22T09:30:00.5Z' },
        { ...connected, lastEventTime: null },
      ],
    });
    expect(await core.clients()).toEqual([
      {
        uid: 'uid-ada',
        connection: 'tls:1',
        callsign: 'ADA',
        username: 'ada',
        groups: ['Ops', 'Red'],
        team: 'Cyan',
        role: 'Team Member',
        device: 'ATAK-CIV 5.3.0',
        address: '192.0.2.7',
        framing: null,
        since: '2026-11-22T09:00:00.005Z',
        lastReport: '2026-11-22T10:00:00.000Z',
      },
      expect.objectContaining({
        uid: '',
        connection: 'tls:2',
        username: '',
        groups: [],
        device: '',
        since: null,
        lastReport: null,
      }),
    ]);
    expect(server.requests).toContain('GET /Marti/api/clientEndPoints?showCurrentlyConnectedClients=true');
  });

  it('are shown without since when, where the core does not say it', async () => {
    serve({ [ALL]: [client('ada', 'tls:1')], [ENDPOINTS]: page(500) });
    expect(await core.clients()).toMatchObject([{ uid: 'uid-ada', since: null }]);
    serve({ [ALL]: page(500), [ENDPOINTS]: [] });
    expect(await failureOf(core.clients())).toMatchObject({ code: 'upstream' });
  });

  it('are disconnected when they are gone from the stream, by either of their names', async () => {
    const all = [client('ada', 'tls:1'), client('ada', 'tls:2'), client('ben', 'tls:3')];
    const end = (names: string[]) => (_: unknown, response: Response) => {
      for (const name of names)
        all.splice(
          all.findIndex((each) => each['subscriptionUid'] === name),
          1,
        );
      sendJson(response, {});
    };
    serve({
      [ALL]: (_: unknown, response: Response) => sendJson(response, { data: all }),
      'DELETE /Marti/api/subscriptions/delete/tls:1': end(['tls:1']),
      // This core knows what devices call themselves, and not its own names.
      'DELETE /Marti/api/subscriptions/delete/tls:2': page(400),
      'DELETE /Marti/api/subscriptions/delete/uid-ada': end(['tls:2']),
    });
    expect(await core.disconnect('uid-ada')).toBe(true);
    expect(all.map((each) => each['subscriptionUid'])).toEqual(['tls:3']);
    expect(await core.disconnect('uid-ada')).toBe(false);
    expect(await core.disconnect('')).toBe(false);
    expect(server.requests.filter((each) => each.startsWith('DELETE'))).toHaveLength(3);
  });

  it('leave everybody else of the same uid alone', async () => {
    const all = [client('ada', 'tls:1'), client('ada', 'tls:2'), client('ben', 'uid-ada')];
    serve({
      [ALL]: (_: unknown, response: Response) => sendJson(response, { data: all }),
      'DELETE /Marti/api/subscriptions/delete/tls:1': (_: unknown, response: Response) => {
        all.shift();
        response.writeHead(404).end();
      },
      'DELETE /Marti/api/subscriptions/delete/uid-ada': (_: unknown, response: Response) => {
        all.pop();
        sendJson(response, {});
      },
    });
    expect(await core.disconnect('tls:1')).toBe(true);
    expect(await core.disconnect('uid-ada')).toBe(true);
    expect(all.map((each) => each['subscriptionUid'])).toEqual(['tls:2']);
    expect(server.requests.filter((each) => each.startsWith('DELETE'))).toHaveLength(2);
  });

  it('are ended by their connection though no list shows them', async () => {
    serve({
      'DELETE /Marti/api/subscriptions/delete/tls:7': (_: unknown, response: Response) => sendJson(response, {}),
      'DELETE /Marti/api/subscriptions/delete/tls:8': page(400),
      'DELETE /Marti/api/subscriptions/delete/tls:9': page(500),
    });
    expect(await core.endConnection('tls:7')).toBe(true);
    expect(await core.endConnection('tls:8')).toBe(false);
    expect(await failureOf(core.endConnection('tls:9'))).toMatchObject({ code: 'upstream' });
    expect(server.requests.filter((each) => each.startsWith('GET'))).toEqual([]);
  });

  it('are not called disconnected while the core shows them', async () => {
    serve({
      [ALL]: [client('ada', 'tls:1')],
      'DELETE /Marti/api/subscriptions/delete/tls:1': (_: unknown, response: Response) => response.end(),
    });
    expect(await failureOf(core.disconnect('tls:1'))).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('still on the stream'),
    });
  });
});

describe('the groups of a user', () => {
  it('are taken anew by the name as it is', async () => {
    // As a release answers: nothing, for known and unknown names alike.
    serve({ 'GET /Marti/api/groups/update/a?b': (_: unknown, response: Response) => response.end() });
    await core.regroup('a?b');
    expect(server.requests).toEqual(['GET /Marti/api/groups/update/a?b']);
    expect(await failureOf(core.regroup('ada'))).toMatchObject({ code: 'upstream' });
  });
});

describe('plugins', () => {
  const plugin = {
    name: 'relay',
    description: null,
    version: '1.2',
    enabled: true,
    started: false,
    exceptionMessage: '',
  };

  it('are listed, and `unavailable` while their process is down', async () => {
    serve({ [PLUGINS]: [plugin, { ...plugin, name: 'bad', exceptionMessage: 'NullPointerException' }] });
    expect(await core.plugins()).toEqual([
      { name: 'relay', description: '', version: '1.2', enabled: true, started: false, error: null },
      { name: 'bad', description: '', version: '1.2', enabled: true, started: false, error: 'NullPointerException' },
    ]);
    serve({ [PLUGINS]: (_: unknown, response: Response) => sendJson(response, { version: '3', data: [] }, 500) });
    expect(await failureOf(core.plugins())).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('plugin process of the core is down'),
    });
    serve({ [PLUGINS]: page(500) });
    expect(await failureOf(core.plugins())).toMatchObject({ code: 'upstream' });
    serve({ [PLUGINS]: [] });
    expect(await core.plugins()).toEqual([]);
    expect(await failureOf(core.changePlugin('nope', { enabled: true }))).toMatchObject({
      code: 'not_found',
      message: 'The core has no plugin "nope"; GET /api/plugins lists them.',
    });
  });

  it('are changed by name, and read back', async () => {
    let reads = 0;
    serve({
      [PLUGINS]: (_: unknown, response: Response) =>
        sendJson(response, { data: [{ ...plugin, started: reads++ > 1 }] }),
      'POST /Marti/api/plugins/info/started': (_: unknown, response: Response) => response.end(),
    });
    expect(await core.changePlugin('relay', { started: true })).toMatchObject({ name: 'relay', started: true });
    expect(server.requests).toContain('POST /Marti/api/plugins/info/started?name=relay&status=true');
    expect(await failureOf(core.changePlugin('other', { enabled: true }))).toMatchObject({ code: 'not_found' });
    expect(server.requests.filter((each) => each.startsWith('POST'))).toHaveLength(1);
  });
});

describe('the state of the core', () => {
  const VERSION = 'GET /Marti/api/version';
  const version = (_: unknown, response: Response): void => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end('5.7-RELEASE-8\n');
  };
  const figure = (value: number) => (_: unknown, response: Response) =>
    sendJson(response, { name: 'x', measurements: [{ statistic: 'VALUE', value }], availableTags: [] });

  it('is its version, its start and its memory, as far as it says so', async () => {
    serve({ [VERSION]: version });
    expect(await core.status()).toEqual({ version: '5.7-RELEASE-8', startedAt: null, memory: null });
    serve({
      [VERSION]: version,
      'GET /actuator/metrics/process.start.time': figure(1_700_000_000.25),
      'GET /actuator/metrics/jvm.memory.used': figure(5e8),
      'GET /actuator/metrics/jvm.memory.max': figure(-1),
    });
    expect(await core.status()).toEqual({
      version: '5.7-RELEASE-8',
      startedAt: '2023-11-14T22:13:20.250Z',
      memory: { usedBytes: 5e8, capBytes: null },
    });
    expect(server.requests).toContain('GET /actuator/metrics/jvm.memory.used?tag=area:heap');
  });

  it('is unknown when something else answers', async () => {
    serve({ [VERSION]: page(200) });
    expect(await failureOf(core.status())).toMatchObject({ code: 'upstream' });
  });

  it('says the same each time when all of it fails, whichever fails first', async () => {
    const late = (request: unknown, response: Response): void =>
      void setTimeout(() => page(503)(request, response), 50);
    serve({
      'GET /Marti/api/version': late,
      'GET /actuator/metrics/process.start.time': page(503),
      'GET /actuator/metrics/jvm.memory.used': page(503),
      'GET /actuator/metrics/jvm.memory.max': page(503),
    });
    expect(await failureOf(core.status())).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('503 for GET /Marti/api/version'),
    });
  });
});

describe('attempts to enroll', () => {
  const attempt = {
    at: '2026-11-22T10:00:00Z',
    address: '192.0.2.7',
    username: 'ada',
    clientUid: 'A',
    result: 'refused',
    reason: 'r',
  };

  it('are of one name, newest first, and unknown where the core has no such list', async () => {
    const newer = { ...attempt, at: '2026-11-22T10:00:01.5Z', username: 'ADA', result: 'signed', reason: undefined };
    serve({ 'GET /Marti/api/tls/attempts': [attempt, newer, { ...attempt, username: 'ben' }] });
    expect(await core.enrollmentAttempts('ada')).toEqual([
      { ...newer, at: '2026-11-22T10:00:01.500Z', reason: '' },
      { ...attempt, at: '2026-11-22T10:00:00.000Z' },
    ]);
    for (const status of [403, 404, 405]) {
      serve({ 'GET /Marti/api/tls/attempts': page(status) });
      expect(await core.enrollmentAttempts('ada')).toBeUndefined();
    }
    serve({ 'GET /Marti/api/tls/attempts': [{ ...attempt, result: 'perhaps' }] });
    expect(await failureOf(core.enrollmentAttempts('ada'))).toMatchObject({ code: 'upstream' });
  });
});
