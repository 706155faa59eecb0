// Binds a second at 16 callers over kept connections: our directory against the hash alone, and
// Debian's slapd beside it. Then a minute of a hostile client, in a process of its own: what it
// costs those who come with a right password.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Client } from 'ldapts';
import { hashPassword } from '../packages/identity/model/password-hash.ts';
import { slapdMissing, startSlapd } from '../test/sign-in/fake-slapd.ts';
import { perSecond, report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const CALLERS = 16;
const ROUNDS = 5;
const PASSWORD = 'a password that is right';
const HOSTILE_MS = 60_000;

export async function run(): Promise<void> {
  const stack = await benchStack();
  const { url, base_dn: base } = stack.ldap;
  const dn = `cn=webadmin,ou=users,${base}`;
  const slapd = slapdMissing === undefined ? await startSlapd() : undefined;
  await slapd?.createUser('bench', PASSWORD);
  const ours = await callers(url, dn, stack.password);
  const theirs =
    slapd && (await callers(`ldap://127.0.0.1:${slapd.port}`, 'cn=bench,ou=users,DC=core,DC=holdfast', PASSWORD));
  try {
    await hashesPerSecond();
    await bindsPerSecond(ours);
    await compare(ours, theirs);
    await underAttack(stack, { url, dn, password: stack.password });
  } finally {
    for (const client of [...ours, ...(theirs ?? [])]) await client.end();
    await slapd?.end();
    stack.stop();
  }
}

interface Caller {
  bind(): Promise<void>;
  end(): Promise<void>;
}

/** Kept connections that bind as the same person again and again. */
async function callers(url: string, dn: string, password: string): Promise<Caller[]> {
  const connected = Array.from({ length: CALLERS }, () => new Client({ url, timeout: 60_000 }));
  return Promise.all(
    connected.map(async (client) => {
      await client.bind(dn, password);
      return { bind: () => client.bind(dn, password), end: () => client.unbind() };
    }),
  );
}

async function compare(ours: readonly Caller[], theirs: readonly Caller[] | undefined): Promise<void> {
  const hash: number[] = [];
  const embedded: number[] = [];
  const slapd: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    hash.push(await hashesPerSecond());
    embedded.push(await bindsPerSecond(ours));
    if (theirs !== undefined) slapd.push(await bindsPerSecond(theirs));
  }
  const cost = (availableParallelism() * 1000) / sampleOf(hash).median;
  report(`argon2id alone (19 MiB, 2 passes; ${cost.toFixed(1)} ms of a core)`, show(sampleOf(hash), 'a second'));
  report(`binds at the embedded directory, ${CALLERS} callers`, show(sampleOf(embedded), 'a second'));
  reportAim('  ratio of the medians', sampleOf(embedded).median / sampleOf(hash).median, 0.9, 'times', { least: true });
  if (slapd.length > 0) report(`binds at slapd (salted SHA-1), ${CALLERS} callers`, show(sampleOf(slapd), 'a second'));
  else report('binds at slapd', `not measured: ${slapdMissing}`);
}

/** As many at once as the directory makes. */
async function hashesPerSecond(): Promise<number> {
  return perSecond(Array.from({ length: availableParallelism() }, () => () => hashPassword(PASSWORD)));
}

async function bindsPerSecond(of: readonly Caller[]): Promise<number> {
  return perSecond(of.map((caller) => () => caller.bind()));
}

interface Account {
  url: string;
  dn: string;
  password: string;
}

/**
 * The same attack goes against a server that only swallows it: what is left is the directory's own
 * doing.
 */
async function underAttack(stack: BenchStack, account: Account): Promise<void> {
  const quiet = await honestTimes(account, 10_000);
  const sink = await attacked('sink', stack, account);
  const real = await attacked('directory', stack, account);
  const p99 = { quiet: percentile(quiet), sink: percentile(sink), real: percentile(real) };
  report('bind and read, one at a time, p99: nobody else', `${p99.quiet.toFixed(1)} ms`);
  report('  the attack goes to a server that swallows it', `${p99.sink.toFixed(1)} ms`);
  report('  the attack goes to the directory', `${p99.real.toFixed(1)} ms of ${real.length} binds, all accepted`);
  reportAim('  ratio to the attack elsewhere', p99.real / p99.sink, 1.5, 'times');
  reportAim('  ratio to nobody else', p99.real / p99.quiet, 1.5, 'times');
}

async function attacked(target: 'sink' | 'directory', { ldap }: BenchStack, account: Account): Promise<number[]> {
  // Guesses at the honest name would lock it out: that is the rule, and nothing could be measured
  // any more.
  const guessed = account.dn.replace('cn=webadmin,', 'cn=akadmin,');
  const args = [join(import.meta.dirname, 'hostile-ldap.ts'), target, new URL(ldap.url).port, guessed];
  const attacker = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(attacker.stdout, 'data');
  const times = await honestTimes(account, HOSTILE_MS);
  const reported = once(attacker.stdout, 'data');
  attacker.kill('SIGTERM');
  const [line] = (await reported) as [Buffer];
  report(`  what the attacker did to the ${target} in a minute`, line.toString().trim());
  return times;
}

/** Milliseconds of each bind with the read of the own entry after it; a refused one throws. */
async function honestTimes({ url, dn, password }: Account, forMs: number): Promise<number[]> {
  const client = new Client({ url, timeout: 60_000 });
  const times: number[] = [];
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    const begun = performance.now();
    await client.bind(dn, password);
    const { searchEntries } = await client.search(dn, { scope: 'base', attributes: ['memberOf'] });
    if (searchEntries.length !== 1) throw new Error('the own entry was not found');
    times.push(performance.now() - begun);
    await new Promise((pause) => setTimeout(pause, 20));
  }
  await client.unbind();
  return times;
}

function percentile(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}
