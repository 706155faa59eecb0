// What honest clients notice while passwords are guessed from a thousand addresses at 8446 and at
// the API: a bind at the directory, a sign-in, an enrollment. The same attack against a server that
// refuses at once shows what is left of two cores beside it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:https';
import { join } from 'node:path';
import { Client } from 'ldapts';
import { report, reportAim } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const MS = 60_000;
const PASSWORD = 'a password that is right';
const WORST_MS = 2_000;
const RATIO = 3;

type Honest = Record<'bind' | 'sign-in' | 'enrollment', () => Promise<void>>;

export async function run(): Promise<void> {
  const stack = await benchStack();
  try {
    await makePeople(stack);
    const honest = honestClients(stack);
    const quiet = await measure(honest, 20_000);
    const elsewhere = await attacked('sink', stack, honest);
    const here = await attacked('here', stack, honest);
    for (const what of Object.keys(honest) as (keyof Honest)[]) {
      const p99 = [quiet, elsewhere, here].map((times) => percentile(times[what], 0.99));
      const [alone = 0, beside = 0, under = 0] = p99;
      report(`${what}, p99: nobody else, attack elsewhere, attack`, p99.map((ms) => `${ms.toFixed(0)} ms`).join(', '));
      reportAim('  ratio to nobody else', under / alone, RATIO, 'times');
      reportAim('  ratio to the attack elsewhere', under / beside, RATIO, 'times');
      reportAim('  longest', Math.max(...here[what]), WORST_MS, 'ms', { digits: 0 });
    }
  } finally {
    stack.stop();
  }
}

async function makePeople({ api, authorization }: BenchStack): Promise<void> {
  const ask = (path: string, body: object): Promise<Response> =>
    fetch(`${api}${path}`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  for (const username of ['honest', 'guessed1', 'guessed2', 'guessed3']) {
    const { id } = (await (await ask('/api/users', { username, name: username })).json()) as { id: number };
    await ask(`/api/users/${id}/password`, { password: PASSWORD });
  }
}

/** Each from an address of its own, with a new connection where a device would make one. */
function honestClients({ api, ldap, enrollmentPort: port }: BenchStack): Honest {
  const authorization = `Basic ${Buffer.from(`honest:${PASSWORD}`).toString('base64')}`;
  const dn = `cn=honest,ou=users,${ldap.base_dn}`;
  return {
    async bind() {
      const client = new Client({ url: ldap.url, timeout: 60_000 });
      await client.bind(dn, PASSWORD);
      await client.unbind();
    },
    async 'sign-in'() {
      // Of this base nothing is remembered: the directory is asked each time.
      const { status } = await fetch(`${api}/auth/verify?base=core`, { headers: { authorization } });
      if (status !== 200) throw new Error(`the sign-in was answered with ${status}`);
    },
    async enrollment() {
      const options = {
        host: '127.0.0.1',
        port,
        path: '/Marti/api/tls/config',
        agent: false,
        rejectUnauthorized: false,
      };
      const sent = request({ ...options, localAddress: '127.0.0.9', headers: { authorization } });
      sent.end();
      const [response] = (await once(sent, 'response')) as [{ statusCode: number; resume(): void }];
      response.resume();
      if (response.statusCode !== 200) throw new Error(`the enrollment was answered with ${response.statusCode}`);
    },
  };
}

/** One of each after the other, with pauses, as people come. */
async function measure(honest: Honest, forMs: number): Promise<Record<keyof Honest, number[]>> {
  const times: Record<keyof Honest, number[]> = { bind: [], 'sign-in': [], enrollment: [] };
  const end = performance.now() + forMs;
  while (performance.now() < end)
    for (const [what, act] of Object.entries(honest) as [keyof Honest, () => Promise<void>][]) {
      const begun = performance.now();
      await act();
      times[what].push(performance.now() - begun);
      await new Promise((pause) => setTimeout(pause, 30));
    }
  return times;
}

async function attacked(
  target: 'sink' | 'here',
  stack: BenchStack,
  honest: Honest,
): Promise<Record<keyof Honest, number[]>> {
  const args = [
    join(import.meta.dirname, 'guessing-client.ts'),
    String(stack.enrollmentPort),
    String(stack.apiPort),
    target,
  ];
  const attacker = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(attacker.stdout, 'data');
  const times = await measure(honest, MS);
  const reported = once(attacker.stdout, 'data');
  attacker.kill('SIGTERM');
  const [line] = (await reported) as [Buffer];
  report(`  what the attacker heard (${target})`, line.toString().trim());
  return times;
}

function percentile(times: readonly number[], at: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * at)] ?? 0;
}
