// A page of 200 users with their certificates, of 10,000 users and 20,000 certificates, when the
// core is 5 ms away: against the same 200 questions to the core, one after the other over one
// connection, in the same run.

import { fork } from 'node:child_process';
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import postgres from 'postgres';
import { testPki } from '../test/core/fake-test-pki.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack, OFFSET } from './stack.ts';
import { fillUsers } from './users.ts';

const USERS = 10_000;
const EACH = 2;
const PAGE = 200;
const ROUNDS = 11;
const LATENCY_MS = 5;
const PROXY_PORT = 8442 + OFFSET;
const CORE_PORT = 8443 + OFFSET;

export async function run(): Promise<void> {
  const file = join(import.meta.dirname, 'delaying-proxy.ts');
  const proxy = fork(file, [PROXY_PORT, CORE_PORT, LATENCY_MS].map(String));
  await once(proxy, 'message');
  try {
    const stack = await benchStack({ CORE_API_URL: `https://127.0.0.1:${PROXY_PORT}` });
    try {
      await fillUsers(stack, USERS);
      await fillCertificates(stack);
      await compare(stack);
    } finally {
      stack.stop();
    }
  } finally {
    proxy.kill();
  }
}

async function compare(stack: BenchStack): Promise<void> {
  const core = oneConnection(stack);
  const [pages, bare, without]: [number[], number[], number[]] = [[], [], []];
  try {
    // Each round has a page of its own: nobody has asked for it before.
    for (let round = -1; round < ROUNDS; round++) {
      const path = `/api/users?search=person-&page=${round + 2}&page_size=${PAGE}`;
      without.push((await timed(() => usersOf(stack, path))).milliseconds);
      const page = await timed(() => usersOf(stack, `${path}&include=certs`));
      mustBeWhole(page.answer);
      const response = await timed(async () => {
        let found = 0;
        for (const { username } of page.answer) found += await core.certificatesOf(username);
        return found;
      });
      if (response.answer !== PAGE * EACH) throw new Error(`the core gave ${response.answer} certificates`);
      if (round < 0) continue;
      pages.push(page.milliseconds);
      bare.push(response.milliseconds);
    }
  } finally {
    core.close();
  }
  const ratios = pages.map((each, at) => (bare[at] ?? 0) / each);
  report(`GET /api/users, ${PAGE} of ${USERS}, without certificates`, show(sampleOf(without), 'ms', 1));
  report(`  with include=certs, of ${USERS * EACH}, core ${LATENCY_MS} ms away`, show(sampleOf(pages), 'ms', 1));
  report(`  ${PAGE} calls to the core, one after the other`, show(sampleOf(bare), 'ms', 1));
  reportAim('  times faster', sampleOf(ratios).median, 8, '', { digits: 1, least: true });
}

interface User {
  username: string;
  certs?: { username: string; serial: string }[];
}

async function usersOf(stack: BenchStack, path: string): Promise<User[]> {
  const answer = await fetch(stack.api + path, { headers: { authorization: stack.authorization } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 300)}`);
  return (JSON.parse(text) as { results: User[] }).results;
}

function mustBeWhole(users: readonly User[]): void {
  const own = users.flatMap(({ username, certs = [] }) => certs.filter((each) => each.username === username));
  if (users.length !== PAGE || own.length !== PAGE * EACH || own.some(({ serial }) => serial === ''))
    throw new Error(`the page has ${users.length} users with ${own.length} certificates of theirs`);
}

async function timed<T>(work: () => Promise<T>): Promise<{ answer: T; milliseconds: number }> {
  const began = performance.now();
  const answer = await work();
  return { answer, milliseconds: performance.now() - began };
}

/**
 * As simple as it can be: the certificate of management, one connection that is kept, and the
 * answer parsed.
 */
function oneConnection({ coreDirectory }: BenchStack): {
  certificatesOf: (username: string) => Promise<number>;
  close: () => void;
} {
  const files = join(coreDirectory, 'certs/files');
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 1,
    pfx: readFileSync(join(files, 'svc_api.p12')),
    passphrase: 'atakatak',
    ca: readFileSync(join(files, 'ca.pem')),
  });
  const options = { agent, host: '127.0.0.1', port: PROXY_PORT };
  return {
    async certificatesOf(username) {
      const asking = request({ ...options, path: `/Marti/api/certadmin/cert?username=${username}` });
      asking.end();
      const [answer] = (await once(asking, 'response')) as [AsyncIterable<Buffer> & { statusCode: number }];
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk);
      if (answer.statusCode !== 200) throw new Error(`the core answered ${answer.statusCode}`);
      return (JSON.parse(Buffer.concat(chunks).toString()) as { data: unknown[] }).data.length;
    },
    close: () => agent.destroy(),
  };
}

const NAME_LENGTH = 'person-00000'.length;

/**
 * Straight into the core's table. One certificate was signed; the others differ in name and serial
 * number, and nobody verifies them.
 */
async function fillCertificates({ database }: BenchStack): Promise<void> {
  const pki = await testPki();
  const { raw } = new X509Certificate((await pki.client('x'.repeat(NAME_LENGTH))).certificate);
  const serial = Buffer.from(new X509Certificate(raw).serialNumber, 'hex');
  const places = [raw.indexOf(serial), raw.indexOf('x'.repeat(NAME_LENGTH))] as const;
  const sql = postgres(database, { max: 1, onnotice: () => undefined });
  for (let from = 1; from <= USERS; from += 500) {
    const rows = Array.from({ length: 500 * EACH }, (_, index) => {
      const name = `person-${String(from + Math.floor(index / EACH)).padStart(5, '0')}`;
      const der = Buffer.from(raw);
      Buffer.concat([Buffer.from([0x41]), randomBytes(serial.length - 1)]).copy(der, places[0]);
      der.write(name, places[1], 'latin1');
      return { name, uid: `ANDROID-${index}`, pem: pemOf(der), hash: hashOf(der) };
    });
    await sql`
      INSERT INTO certificate (creator_dn, subject_dn, user_dn, issuance_date, effective_date, expiration_date, certificate, hash, client_uid)
      SELECT name, 'CN=' || name || ',OU=CoT,O=Holdfast', name, now(), now(), now() + interval '1 year', pem, hash, uid
      FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (name text, uid text, pem text, hash text)`;
  }
  await sql`ANALYZE certificate`;
  await sql.end({ timeout: 2 });
}

function pemOf(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function hashOf(der: Buffer): string {
  const digest = createHash('sha256').update(der).digest('hex').toUpperCase();
  return (digest.match(/../g) ?? []).join(':');
}
