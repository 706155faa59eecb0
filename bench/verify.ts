// /auth/verify at 16 callers: passwords that nobody has seen a moment ago against the directory's
// own binds, a session against /api/ping, and a locked address against a bare node:http server that
// serves the same bytes. Alternating rounds.

import { Client } from 'ldapts';
import { hashPassword } from '../packages/identity/model/password-hash.ts';
import { BARE_PORT, load, pin, startBare } from './against-bare.ts';
import type { LoadResult } from './load.ts';
import { perSecond, report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const CALLERS = 16;
const ROUNDS = 5;
const LOAD_SECONDS = 2;
/** Nobody comes twice while a password is remembered (20 s), at a hundred binds a second. */
const ACCOUNTS = 2_500;
const PASSWORD = 'a password that is right';

export async function run(): Promise<void> {
  const stack = await benchStack();
  try {
    await makeAccounts(stack);
    await uncached(stack);
    pin(stack.pid('management'), 0);
    await withSession(stack);
    await lockedOut(stack);
  } finally {
    stack.stop();
  }
}

const nameOf = (index: number): string => `bench-${index}`;

/** The hash of one password is made once, and imported for all. */
async function makeAccounts({ identity }: BenchStack): Promise<void> {
  const hash = await hashPassword(PASSWORD);
  const post = async (path: string, body: object): Promise<Response> => {
    const headers = { authorization: `Bearer ${identity.token}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${identity.url}/api/v3/core/users/${path}`, init);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < ACCOUNTS) {
      const username = nameOf(next++);
      const { pk } = (await (await post('', { username, name: username })).json()) as { pk: number };
      await post(`${pk}/set_password_hash/`, { password: hash });
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

/** Each of both goes through the same accounts in turn. */
async function uncached(stack: BenchStack): Promise<void> {
  const clients = Array.from({ length: CALLERS }, () => new Client({ url: stack.ldap.url, timeout: 60_000 }));
  const turn = { bind: 0, verify: 0 };
  const bind = async (client: Client): Promise<void> => {
    await client.bind(`cn=${nameOf(turn.bind++ % ACCOUNTS)},ou=users,${stack.ldap.base_dn}`, PASSWORD);
  };
  const verify = async (): Promise<void> => {
    const credentials = Buffer.from(`${nameOf(turn.verify++ % ACCOUNTS)}:${PASSWORD}`).toString('base64');
    const headers = { authorization: `Basic ${credentials}` };
    const response = await fetch(`${stack.api}/auth/verify`, { headers });
    if (response.status !== 200) throw new Error(`/auth/verify answered ${response.status}`);
    await response.arrayBuffer();
  };
  const binds: number[] = [];
  const verified: number[] = [];
  await perSecond(clients.map((client) => () => bind(client)));
  await perSecond(clients.map(() => verify));
  for (let round = 0; round < ROUNDS; round++) {
    binds.push(await perSecond(clients.map((client) => () => bind(client))));
    verified.push(await perSecond(clients.map(() => verify)));
  }
  for (const client of clients) await client.unbind();
  report(`binds at the embedded directory, ${CALLERS} callers`, show(sampleOf(binds), 'a second'));
  report(`/auth/verify, nobody remembered, ${CALLERS} callers`, show(sampleOf(verified), 'a second'));
  ratio(verified, binds, 0.7);
}

async function withSession(stack: BenchStack): Promise<void> {
  const form = new URLSearchParams({ username: 'webadmin', password: stack.password });
  const page = await fetch(`${stack.api}/sign-in`, { method: 'POST', body: form, redirect: 'manual' });
  const cookie = page.headers.getSetCookie()[0]?.split(';', 1)[0];
  if (page.status !== 303 || cookie === undefined) throw new Error(`POST /sign-in answered ${page.status}`);
  const order = { port: stack.apiPort, connections: CALLERS, seconds: LOAD_SECONDS };
  const head = 'HTTP/1.1\r\nHost: 127.0.0.1\r\n';
  await alternate(
    ['/api/ping', () => load({ ...order, request: `GET /api/ping ${head}\r\n` })],
    [
      '/auth/verify with a session',
      () => load({ ...order, request: `GET /auth/verify ${head}Cookie: ${cookie}\r\n\r\n` }),
    ],
    0.5,
  );
}

/** Comes last: the address stays locked. */
async function lockedOut(stack: BenchStack): Promise<void> {
  const wrong = `Basic ${Buffer.from('webadmin:wrong').toString('base64')}`;
  const ask = (): Promise<Response> => fetch(`${stack.api}/auth/verify`, { headers: { authorization: wrong } });
  for (let count = 0; count < 10; count++) await ask();
  const answer = await ask();
  if (answer.status !== 429) throw new Error(`/auth/verify answered ${answer.status} to the eleventh wrong password`);
  const names = ['content-type', 'cache-control', 'x-request-id', 'retry-after'];
  const headers = Object.fromEntries(names.map((name) => [name, answer.headers.get(name) ?? '']));
  const bare = await startBare({ status: 429, headers, body: await answer.text() });
  pin(bare.pid, 0);
  const request = `GET /auth/verify HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${wrong}\r\n\r\n`;
  const order = { request, connections: CALLERS, seconds: LOAD_SECONDS, status: 429 };
  try {
    await alternate(
      ['bare node:http, 429', () => load({ ...order, port: BARE_PORT })],
      ['/auth/verify from a locked address', () => load({ ...order, port: stack.apiPort })],
      0.7,
    );
  } finally {
    bare.end();
  }
}

type Named = [name: string, run: () => Promise<LoadResult>];

async function alternate([nameOfOne, one]: Named, [nameOfOther, other]: Named, aim: number): Promise<void> {
  const series = { one: [] as number[], other: [] as number[] };
  await one();
  await other();
  for (let round = 0; round < ROUNDS; round++) {
    series.one.push((await one()).perSecond);
    series.other.push((await other()).perSecond);
  }
  report(`${nameOfOne}, ${CALLERS} connections`, show(sampleOf(series.one), 'a second'));
  report(`${nameOfOther}, ${CALLERS} connections`, show(sampleOf(series.other), 'a second'));
  ratio(series.other, series.one, aim);
}

function ratio(of: number[], to: number[], aim: number): void {
  const value = sampleOf(of).median / sampleOf(to).median;
  reportAim('  ratio of the medians', value, aim, 'times', { least: true });
}
