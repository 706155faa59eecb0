// What of the light stack can be reached from where: of the host exactly the published ports, of a
// network its own services, and of the API nothing without credentials, whatever headers say.

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { addressesOf, inNetwork, type Service } from './light-services.ts';
import { obstacle } from './shared-engine.ts';
import { sharedLight, type SharedLight } from './shared-light.ts';
import { administer, asWebadmin, throughCaddy } from './through-caddy.ts';

/** 18443 by the layer of the tests: production leaves 8443 to compose.dev.yaml. */
const PUBLISHED = [10080, 10443, 18089, 18443, 18446];

const MEMBERS: Record<string, Service[]> = {
  edge: ['caddy', 'management', 'core'],
  'flows-door': ['caddy', 'flows'],
  'flows-core': ['flows', 'core'],
  video: ['caddy', 'video', 'flows'],
  'video-api': ['management', 'video'],
  directory: ['identity', 'management', 'core'],
  'core-data': ['core-database', 'core', 'management', 'backup'],
  'app-data': ['app-database', 'identity', 'management', 'backup'],
};
const LISTENS: Record<Service, number[]> = {
  'app-database': [5432],
  'core-database': [5432],
  identity: [3389, 9000],
  core: [8089, 8443, 8446],
  management: [3000, 8080],
  backup: [8090],
  caddy: [80, 443, 8446],
  flows: [1880],
  video: [1935],
};

const TRY_PLACES = `
  const { connect } = require('node:net');
  const reached = (place) => new Promise((done) => {
    const [host, port] = place.split(':');
    const socket = connect(Number(port), host);
    const end = (is) => { socket.destroy(); done(is ? [place] : []); };
    socket.setTimeout(3000, () => end(false));
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
  Promise.all(process.argv.slice(1).map(reached)).then((all) => console.log(JSON.stringify(all.flat())));
`;

const ASK = `
  const [url, ...asked] = process.argv.slice(1);
  const answer = async (each) => {
    const { method, path, headers } = JSON.parse(each);
    return (await fetch(url + path, { method, headers, redirect: 'manual' })).status;
  };
  (async () => {
    const all = [];
    for (const each of asked) all.push(await answer(each));
    console.log(JSON.stringify(all));
  })();
`;

interface Request {
  method?: string;
  path: string;
  headers?: Record<string, string>;
}

describe.skipIf(obstacle !== '')('of the light stack', () => {
  let light: SharedLight;
  beforeAll(async () => {
    light = await sharedLight();
  });

  const askFrom = async (network: string, requests: Request[], at = 'management:8080'): Promise<number[]> =>
    JSON.parse(
      await inNetwork(light, network, ASK, `http://${at}`, ...requests.map((each) => JSON.stringify(each))),
    ) as number[];

  it('the host binds the published ports and nothing else', async () => {
    expect(listening(light)).toEqual(PUBLISHED);
    expect(await openPorts(light.engine.address)).toEqual(PUBLISHED);
  });

  // What does not answer is waited for.
  it.concurrent.each(Object.keys(MEMBERS))(
    'a container on %s reaches the services of that network and no other',
    async (network) => {
      const places = new Map<string, string>();
      const addresses = await addressesOf(light);
      for (const [of, services] of Object.entries(MEMBERS))
        for (const service of services)
          for (const port of LISTENS[service])
            places.set(
              `${addresses.get(`${service}@${of}`) ?? ''}:${String(port)}`,
              `${of}/${service}:${String(port)}`,
            );
      const reached = JSON.parse(await inNetwork(light, network, TRY_PLACES, ...places.keys())) as string[];
      const own = (MEMBERS[network] ?? []).flatMap((service) =>
        LISTENS[service].map((port) => `${network}/${service}:${String(port)}`),
      );
      expect(new Set(reached.map((place) => places.get(place)))).toEqual(new Set(own));
    },
  );

  it.each(['edge', 'directory', 'core-data', 'app-data'])(
    'every route is 401 without credentials for a container on %s that says it is the proxy',
    async (network) => {
      const { paths } = await administer<{ paths: Record<string, object> }>(light, '/api/openapi.json');
      const headers = { 'x-forwarded-for': '127.0.0.1', 'remote-user': 'webadmin', 'remote-groups': 'core_ROLE_ADMIN' };
      const routes = Object.entries(paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => ({
          method: method.toUpperCase(),
          path: path.replace(/\{[^}]+\}/g, '1'),
          headers,
        })),
      );
      const guarded = routes.filter(({ path }) => path.startsWith('/api/') && path !== '/api/ping');
      expect(guarded.length).toBeGreaterThan(40);
      const statuses = await askFrom(network, [...guarded, { path: '/metrics', headers }]);
      const open = [...guarded, { method: 'GET', path: '/metrics' }].filter((_, index) => statuses[index] !== 401);
      expect(open).toEqual([]);
    },
  );

  it('a container that is not the proxy is counted by its own address, whatever it says, and locks out nobody else', async () => {
    const forged = (count: number): Request => ({
      path: '/auth/verify',
      headers: {
        authorization: basic('webadmin', `guess ${String(count)}`),
        'x-forwarded-for': `198.51.100.${String(count)}`,
      },
    });
    const right = { path: '/api/health', headers: { ...asWebadmin(light), 'x-forwarded-for': '198.51.100.77' } };
    const statuses = await askFrom('edge', [...Array.from({ length: 11 }, (_, count) => forged(count)), right]);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
    expect(await locked()).toEqual([expect.stringMatching(/^172\.16\.65\./)]);
    await letEverybodyIn();
  });

  it.each([
    ['the API', 10443, '/api/health'],
    ['8446', 18446, '/Marti/api/tls/config'],
  ])('who guesses passwords at %s through the proxy locks out itself alone', async (_, port, path) => {
    const [, attacker, other] = light.engine.clients;
    const statusFrom = async (from: string | undefined, password: string): Promise<number> =>
      (await throughCaddy(light, path, { port, from, headers: { authorization: basic('webadmin', password) } })).status;
    const { CORE_WEBADMIN_PASSWORD: password = '' } = light.env;
    for (let count = 0; count < 10; count += 1) expect(await statusFrom(attacker, `guess ${String(count)}`)).toBe(401);
    expect([await statusFrom(attacker, password), await statusFrom(other, password)]).toEqual([429, 200]);
    expect(await locked()).toEqual([attacker]);
    await letEverybodyIn();
  });

  const locked = async (): Promise<string[]> =>
    (await administer<{ results: { address: string }[] }>(light, '/api/lockouts')).results.map(
      ({ address }) => address,
    );

  async function letEverybodyIn(): Promise<void> {
    for (const address of await locked())
      await administer(light, `/api/lockouts/${encodeURIComponent(address)}`, { method: 'DELETE' });
  }

  it('the relay for video speaks RTMP inside', async () => {
    const handshake = `
      const socket = require('node:net').connect(1935, 'video');
      const hello = Buffer.alloc(1537);
      hello[0] = 3;
      socket.write(hello);
      let got = Buffer.alloc(0);
      socket.on('data', (data) => {
        got = Buffer.concat([got, data]);
        if (got.length >= 1537) { console.log(got[0]); socket.destroy(); }
      });
      socket.setTimeout(10_000, () => process.exit(1));`;
    expect(await inNetwork(light, 'video', handshake)).toBe('3');
  });
});

/** Ports on which the engine's host listens for others, as the kernel says. */
function listening({ engine }: SharedLight): number[] {
  const inside = readFileSync(join(engine.directory, 'inside'), 'utf8').trim();
  const ports = ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${inside}/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local = '', , state]) => state === '0A' && !local.startsWith('0100007F'))
      .map(([, local = '']) => Number.parseInt(local.split(':')[1] ?? '', 16)),
  );
  return [...new Set(ports)].toSorted((a, b) => a - b);
}

/** Ports that let somebody in from another machine. */
async function openPorts(host: string): Promise<number[]> {
  const open: number[] = [];
  let next = 1;
  const knock = async (): Promise<void> => {
    for (let port = next++; port <= 65_535; port = next++) {
      const socket = connect(port, host);
      const isOpen = await new Promise<boolean>((done) => {
        socket.once('connect', () => done(true)).once('error', () => done(false));
      });
      socket.destroy();
      if (isOpen) open.push(port);
    }
  };
  await Promise.all(Array.from({ length: 200 }, knock));
  return open.toSorted((a, b) => a - b);
}
