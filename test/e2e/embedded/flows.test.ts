// The flow engine of the embedded stack: the real Node-RED from npm at the real core.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity } from '../../../shared/identity/authentik/http.ts';
import { exclusiveByDatabase } from '../../../shared/identity/exclusive.ts';
import { coreOf, enroll, newChannel, newPerson, workDirectory } from './core-client.ts';
import { eventually, newDataDirectory, newStack, secretsOf, stop, type TestStack } from './embedded.ts';
import { changeFeed, feedNamed, KEY, plane, receiver } from './feed-source.ts';
import { type FlowNode, REQUESTED, deployTelling, flowsMissing, signIn, type Report } from './flow-engine.ts';
import { type StreamDevice, letIn } from './stream-device.ts';

interface WithFlows {
  flows: { url: string; username: string; password: string };
}

let stack: TestStack;
let url: string;
let password: string;

const basic = (): Record<string, string> => ({
  Authorization: `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`,
});
const reported = async (): Promise<Report> =>
  (await (await fetch(`${url}told`, { headers: basic() })).json()) as Report;
const statusOf = async (path: string, headers: Record<string, string> = {}): Promise<number> =>
  (await fetch(`${url}${path}`, { headers })).status;

async function upgradeOf(
  path: string,
  headers: Record<string, string> = {},
  localAddress = '127.0.0.1',
): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const handshake = { 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==', 'Sec-WebSocket-Version': '13' };
    const requested = request({
      hostname,
      port,
      path,
      localAddress,
      headers: { ...headers, ...handshake, Connection: 'Upgrade', Upgrade: 'websocket' },
    });
    requested.on('upgrade', ({ statusCode = 0 }, socket) => resolve((socket.destroy(), statusCode)));
    requested.on('response', (answer) => resolve((answer.resume(), answer.statusCode ?? 0)));
    requested.on('error', reject).end();
  });
}

describe.skipIf(flowsMissing !== undefined)(flowsMissing ?? 'the flow engine of the embedded stack', () => {
  beforeAll(async () => {
    stack = await newStack(newDataDirectory());
    const { code, output } = await stack.start(['--flows']);
    expect([code, output]).toEqual([0, expect.stringContaining('flows ')]);
    ({ url, password } = (stack.file() as unknown as WithFlows).flows);
    const token = await signIn(url, 'admin', password);
    await deployTelling(url, { Authorization: `Bearer ${String(token)}` });
  }, 600_000);

  it('asks whoever comes who he is: editor, API, pages and WebSockets of flows', async () => {
    expect(url).toBe(`http://127.0.0.1:${1880 + stack.offset}/`);
    expect(await Promise.all(['flows', 'settings', 'told'].map((path) => statusOf(path)))).toEqual([401, 401, 401]);
    const guess = { 'x-holdfast-flows': 'a-guess' };
    expect(await Promise.all(['flows', 'told'].map((path) => statusOf(path, guess)))).toEqual([401, 401]);
    expect([await upgradeOf('/live'), await upgradeOf('/live', basic())]).toEqual([401, 101]);
    expect(await statusOf('told', basic())).toBe(200);
    expect(await signIn(url, 'admin', 'wrong')).toBe(403);
    expect(await signIn(url, 'webadmin', password)).toBe(403);
  });

  it('locks an address out after ten wrong passwords at what flows offer, and no other', async () => {
    const wrong = { Authorization: `Basic ${Buffer.from('admin:wrong').toString('base64')}` };
    const elsewhere = '127.0.0.2';
    for (let count = 0; count < 9; count++) expect(await upgradeOf('/live', wrong, elsewhere)).toBe(401);
    expect(await upgradeOf('/live', basic(), elsewhere)).toBe(101);
    expect(await upgradeOf('/live', wrong, elsewhere)).toBe(401);
    expect(await upgradeOf('/live', basic(), elsewhere)).toBe(401);
    expect(await upgradeOf('/live', basic())).toBe(101);
  });

  it('lets in by the editor until one signs out', async () => {
    const token = String(await signIn(url, 'admin', password));
    const headers = { Authorization: `Bearer ${token}` };
    expect(await statusOf('flows', headers)).toBe(200);
    const body = new URLSearchParams({ token });
    expect((await fetch(`${url}auth/revoke`, { method: 'POST', headers, body })).status).toBe(200);
    expect(await statusOf('flows', headers)).toBe(401);
  });

  it('shows flows the role in the database, and no secret of its own or of the stack', async () => {
    const { environment, headers, headersDistinct, rawHeaders } = await reported();
    expect(REQUESTED).toContain('FLOWS_TOKEN');
    expect(environment).toEqual({ PGUSER: 'holdfast_flows' });
    expect(headers['authorization']).toBeUndefined();
    expect(rawHeaders.map((each) => each.toLowerCase())).toContain('host');
    expect(JSON.stringify([headers, headersDistinct, rawHeaders])).not.toContain('Basic');
    const place = `/proc/${stack.pid('flows')}`;
    const seen = ['environ', 'cmdline'].map((name) => readFileSync(`${place}/${name}`, 'latin1')).join('\0');
    const { FLOWS_DB_PASSWORD: own, ...others } = secretsOf(stack);
    expect(seen).toContain(`PGPASSWORD=${own}`);
    expect(Object.keys(others).filter((name) => seen.includes(others[name] ?? ''))).toEqual([]);
  });

  it('says in its log what a flow has failed with', async () => {
    expect(await statusOf('fail', basic())).toBe(200);
    const file = join(stack.data, 'logs/flows.log');
    await eventually('the log has it', () => readFileSync(file, 'utf8').includes('this flow has failed'), 10_000);
  });

  it('hears and says what happens, as svc_nodered, in the groups of that account', async () => {
    const identity = httpIdentity({
      url: `http://127.0.0.1:${9000 + stack.offset}`,
      token: new Secret(secretsOf(stack)['IDENTITY_TOKEN'] ?? ''),
      fetch,
      exclusive: exclusiveByDatabase(
        keptDatabase(new Secret(stack.file().state_database), { name: 'test', called: 'our database', variable: 'it' }),
      ),
    });
    const { id: ada } = await identity.accounts.create({ username: 'ada', name: 'ada' });
    const { id: group } = await identity.groups.create('core_Blue');
    const flows = await identity.accounts.named('svc_nodered');
    if (flows === undefined) throw new Error('svc_nodered is not there');
    for (const id of [ada, flows.id]) await identity.groups.addMember(group, id);
    const identifier = 'enroll-ada';
    const { key } = await identity.appPasswords.create({
      identifier,
      accountId: ada,
      description: '',
      expiresAt: null,
    });
    const core = coreOf(stack);
    const device = await letIn(core, await enroll(core, workDirectory(stack), 'ada', key), 'ADA');
    // The connection of the engine stands already: the core asks for its groups again each minute,
    // to some 15 s.
    await eventually(
      'the flow has an event of ADA',
      async () => {
        device.report();
        return (await reported()).events.some(
          (each) => each.startsWith('<event') && each.includes(`uid="${device.uid}"`),
        );
      },
      120_000,
    );
    const xml =
      '<event version="2.0" uid="flow-1" type="a-f-G" how="m-g" time="2026-01-01T00:00:00Z" start="2026-01-01T00:00:00Z" stale="2036-01-01T00:00:00Z"><point lat="47.5" lon="8.5" hae="0" ce="1" le="1"/><detail/></event>';
    const body = JSON.stringify({ xml });
    const headers = { ...basic(), 'Content-Type': 'application/json' };
    expect((await fetch(`${url}say`, { method: 'POST', headers, body })).status).toBe(200);
    await device.hears('what the flow says', (event) => event.uid() === 'flow-1', 30_000);
    device.leave();
  }, 240_000);

  it('brings a feed to its group alone, within its budget, until it is switched off', async () => {
    const source = await receiver();
    source.aircraft = [plane('a1b2c3', 47.1), plane('d4e5f6', 47.2)];
    for (const [name, group] of [
      ['gwen', 'Green'],
      ['otto', 'Orange'],
    ] as const)
      await newChannel(stack, group, [await newPerson(stack, name, 'word-of-a-person')]);
    const core = coreOf(stack);
    const deviceOf = async (name: string, callsign: string): Promise<StreamDevice> =>
      letIn(core, await enroll(core, workDirectory(stack), name, 'word-of-a-person'), callsign);
    const gwen = await deviceOf('gwen', 'GWEN');
    const otto = await deviceOf('otto', 'OTTO');
    const wanted = { kind: 'adsb', url: source.url, interval_s: 5, group: 'Green', events_per_minute: 6000 };
    await changeFeed(stack, 'PUT', 'planes', { ...wanted, header: KEY, megabytes_per_day: 1 });
    await changeFeed(stack, 'POST', 'planes/on');
    const seen = await gwen.hears('an aircraft', (event) => event.uid() === 'ICAO-A1B2C3', 90_000);
    expect([seen.type(), seen.callsign()]).toEqual(['a-n-A-C-F', 'SWR1<&>']);
    await gwen.hears('the other', (event) => event.uid() === 'ICAO-D4E5F6', 30_000);
    await otto.isUpToDate();
    expect(otto.heard.filter((event) => event.uid().startsWith('ICAO-'))).toEqual([]);
    await eventually(
      'the console knows of it',
      async () => {
        const { problem, state } = (await feedNamed(stack, 'planes')) ?? {};
        return problem === null && (state?.sent_today ?? 0) >= 2;
      },
      60_000,
    );

    source.aircraft = Array.from({ length: 1500 }, (_, at) => plane((0x100000 + at).toString(16), 46 + at / 1000));
    await eventually(
      'the budget is spent',
      async () => ((await feedNamed(stack, 'planes'))?.state?.refused_today ?? 0) > 0,
      60_000,
    );
    const { problem, state } = (await feedNamed(stack, 'planes')) ?? {};
    expect(problem).toContain('did not fit into the disk budget of 1 MB');
    expect(state?.bytes_today).toBeLessThanOrEqual(1_000_000);
    expect(state?.bytes_today).toBeGreaterThan(990_000);

    await changeFeed(stack, 'POST', 'planes/off');
    const headers = { Authorization: `Bearer ${String(await signIn(url, 'admin', password))}` };
    const idsOf = async (): Promise<string[]> =>
      ((await (await fetch(`${url}flows`, { headers })).json()) as FlowNode[]).map(({ id }) => id);
    await eventually(
      'nothing of it is left in the engine',
      async () => !(await idsOf()).some((id) => id.startsWith('holdfast-feed-')),
      60_000,
    );
    expect(await idsOf()).toContain('t-told');
    expect(existsSync(join(stack.data, 'flows/certificate/svc_feed_planes.pem'))).toBe(false);
    expect(await feedNamed(stack, 'planes')).toMatchObject({ active: false, state: null });
    for (const device of [gwen, otto]) device.leave();
    source.close();
  }, 300_000);

  it('starts its flows again with a new certificate, and comes back when it is killed', async () => {
    const file = join(stack.data, 'logs/flows.log');
    const messagesOf = (words: string): number => readFileSync(file, 'utf8').split(words).length - 1;
    const [started, connected] = [messagesOf('flows started again'), messagesOf('"connected to ')];
    // Management gives the same again within seconds: one look of the engine must fall in between.
    await eventually(
      'the flows have started without a certificate',
      () => {
        rmSync(join(stack.data, 'flows/certificate/svc_nodered.pem'), { force: true });
        return messagesOf('flows started again') > started;
      },
      60_000,
    );
    await eventually(
      'the flows are connected with the new one',
      () => messagesOf('"connected to ') > connected,
      60_000,
    );
    const old = stack.pid('flows');
    process.kill(old, 'SIGKILL');
    await eventually(
      'it answers again',
      async () => stack.pid('flows') !== old && (await statusOf('told', basic()).catch(() => 0)) === 200,
      60_000,
    );
  }, 200_000);

  it('keeps what is deployed when the stack is started again, and is not there without --flows', async () => {
    await stop(stack.data);
    expect((await stack.start(['--flows'])).code).toBe(0);
    // The engine listens before its flows run.
    await eventually('the flow answers', async () => (await statusOf('told', basic())) === 200, 30_000);
    await stop(stack.data);
    expect((await stack.start()).code).toBe(0);
    expect(stack.file()).not.toHaveProperty('flows');
    await expect(fetch(url)).rejects.toThrow();
  }, 240_000);
});
