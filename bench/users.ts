// Page 1 of 10,000 users over the API, and one run of the expiry job with 10 of them expired. The
// calls to the provider are counted with 1,000 users and with 10,000: they must be as many.

import postgres from 'postgres';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { run as expireUsers } from '../jobs/expire-users.ts';
import { AuditLog } from '../shared/audit/audit-log.ts';
import type { Deps } from '../shared/http/deps.ts';
import { httpIdentity } from '../shared/identity/authentik/http.ts';
import { exclusiveByDatabase } from '../shared/identity/exclusive.ts';
import { endSignInsOf } from '../shared/sign-in/signed-sign-ins.ts';
import { fakeDeps } from '../test/http/fake-deps.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const FEW = 1_000;
const MANY = 10_000;
const EXPIRED = 10;
const ROUNDS = 31;
const JOB_ROUNDS = 7;
const PAGES = ['page 1', 'page 100', 'search', 'search for a rare name'] as const;
const PATHS: Record<(typeof PAGES)[number], string> = {
  'page 1': '/api/users',
  'page 100': '/api/users?page=100',
  search: '/api/users?search=person',
  'search for a rare name': '/api/users?search=person-0777',
};

export async function run(): Promise<void> {
  // The job of the stack itself must not be faster.
  const stack = await benchStack({ MON_USER_EXPIRY_CHECK_INTERVAL: '86400' });
  try {
    const calls: number[][] = [];
    for (const users of [FEW, MANY]) {
      await fillUsers(stack, users);
      calls.push([await callsOfList(stack), ...(await jobRuns(stack, users))]);
    }
    await pages(stack);
    const [few, many] = calls;
    report(`calls to the provider, list and job, ${FEW} users`, (few ?? []).join(' and '));
    report(`calls to the provider, list and job, ${MANY} users`, (many ?? []).join(' and '));
    reportAim('  more calls with ten times the users', sumOf(many) - sumOf(few), 0, '', { digits: 0 });
  } finally {
    stack.stop();
  }
}

const sumOf = (numbers: readonly number[] = []): number => numbers.reduce((sum, each) => sum + each, 0);

async function query(url: string, text: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  await sql.unsafe(text);
  await sql.end({ timeout: 2 });
}

/** That many people in all, straight into the provider's database. */
export async function fillUsers(stack: BenchStack, users: number): Promise<void> {
  await query(
    stack.identityDatabase,
    `INSERT INTO account (uuid, username, username_key, name, email, email_key, searched, is_active, path, type, attributes, date_joined, last_updated)
     SELECT gen_random_uuid(), name, name, 'Person ' || n, name || '@example.org', name || '@example.org',
       name || ' person ' || n || ' ' || name || '@example.org ' || gen_random_uuid(), true, 'users', 'internal',
       jsonb_build_object('app_expires', 4000000000 + n), now(), now()
     FROM (SELECT n, 'person-' || lpad(n::text, 5, '0') AS name FROM generate_series(1, ${users}) AS n) AS people
     ON CONFLICT DO NOTHING`,
  );
  await query(stack.identityDatabase, 'ANALYZE account');
}

async function pages(stack: BenchStack): Promise<void> {
  for (const page of PAGES) {
    const times: number[] = [];
    for (let round = -3; round < ROUNDS; round++) {
      const began = performance.now();
      const answer = await fetch(stack.api + PATHS[page], { headers: { authorization: stack.authorization } });
      const { count } = (await answer.json()) as { count: number };
      if (!answer.ok || count < 10) throw new Error(`${page}: ${answer.status}, ${count} users`);
      if (round >= 0) times.push(performance.now() - began);
    }
    report(`GET /api/users, ${page} of ${MANY}`, show(sampleOf(times), 'ms', 1));
    if (page === 'page 1') reportAim('  median', sampleOf(times).median, 150, 'ms', { digits: 1 });
  }
}

interface Counted {
  deps: Deps;
  calls: () => number;
}

/** What the job needs, against the parts of the stack, with the calls to the provider counted. */
function counted(stack: BenchStack): Counted {
  let calls = 0;
  const exclusiveRun = (name: string) =>
    keptDatabase(new Secret(stack.stateDatabase), {
      name,
      called: 'our own database',
      variable: 'DATABASE_URL',
      withinMs: 30_000,
    });
  const identity = httpIdentity({
    url: stack.identityUrl,
    token: new Secret(stack.identityToken),
    fetch: async (...args) => {
      calls += 1;
      return fetch(...args);
    },
    exclusive: exclusiveByDatabase(exclusiveRun('bench-identity')),
  });
  const fakes = fakeDeps();
  const audit = new AuditLog({
    run: exclusiveRun('bench-audit'),
    key: new Secret(stack.auditKey),
    headFile: undefined,
    log: fakes.log,
    endSignInsOf,
    signInsEnded: () => undefined,
  });
  const peopleLock = exclusiveByDatabase(exclusiveRun('bench-people'));
  return {
    deps: { ...fakes, identity, audit, peopleLock, now: () => new Date() },
    calls: () => calls,
  };
}

async function callsOfList(stack: BenchStack): Promise<number> {
  const { deps, calls } = counted(stack);
  const without = deps.settings.USERS_HIDDEN_PREFIXES;
  await deps.identity.accounts.list({ page: 1, pageSize: 50, kinds: ['person'], without });
  return calls();
}

/** Calls of one run; the last one is with the most users. */
async function jobRuns(stack: BenchStack, users: number): Promise<number[]> {
  const times: number[] = [];
  let perRun = 0;
  for (let round = -1; round < JOB_ROUNDS; round++) {
    await query(
      stack.identityDatabase,
      `UPDATE account SET is_active = true, attributes = '{"app_expires": 1000000000}' WHERE username_key IN
       (SELECT 'person-' || lpad((n * 37)::text, 5, '0') FROM generate_series(1, ${EXPIRED}) AS n)`,
    );
    const { deps, calls } = counted(stack);
    await deps.identity.me();
    await deps.audit.verify();
    const before = calls();
    const began = performance.now();
    const { expired } = await expireUsers(deps, new Date(), new AbortController().signal);
    if (round >= 0) times.push(performance.now() - began);
    if (expired !== EXPIRED) throw new Error(`${expired} expired, not ${EXPIRED}`);
    perRun = calls() - before;
  }
  report(`expiry job, ${EXPIRED} of ${users} expired`, show(sampleOf(times), 'ms', 1));
  if (users === MANY) reportAim('  median', sampleOf(times).median, 150, 'ms', { digits: 1 });
  return [perRun];
}
