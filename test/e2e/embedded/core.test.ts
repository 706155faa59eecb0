// The sentence that the embedded core has to keep, with OpenSSL and curl as the other party; and
// what a kill leaves behind.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import {
  apiDevice,
  asDevice,
  coreOf,
  type CorePlace,
  type Device,
  enroll,
  keptCertificate,
  listedSerials,
  newPerson,
  sendRequest,
  serialOf,
  signingRequest,
  verdictOf,
  workDirectory,
} from './core-client.ts';
import { type OwnCore, ownCore } from './core-process.ts';
import {
  cleanEnvironment,
  eventually,
  home,
  isFree,
  lives,
  newStack,
  query,
  stop,
  type TestStack,
} from './embedded.ts';
import { commandsOf } from './page-commands.ts';

const PASSWORD = 'a password of Ada, long enough';
/** How often a core is killed in the middle of its work; more by hand. */
const ROUNDS = Number(process.env['HOLDFAST_TEST_KILLS'] ?? 6);
let stack: TestStack;
let core: CorePlace;
let work: string;

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  core = coreOf(stack);
  work = workDirectory(stack);
  await newPerson(stack, 'ada', PASSWORD);
});
afterAll(async () => {
  await stop(stack.data);
});

/** Status of a request over a kept connection; undefined when no answer came. */
async function statusOver(agent: Agent, path: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const sent = request(`${core.api}${path}`, { agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    });
    sent.once('error', () => resolve(undefined)).end();
  });
}

function keptConnection({ certificateFile, keyFile }: Device): Agent {
  const [ca, cert, key] = [stack.file().ca_certificate, certificateFile, keyFile].map((file) => readFileSync(file));
  return new Agent({ keepAlive: true, maxSockets: 1, ca, cert, key });
}

/** As a person would do it with an editor. */
function enterAdministrator(name: string, { hash }: Device): void {
  const file = join(core.directory, 'UserAuthenticationFile.xml');
  const entry = `<User identifier="${name}" fingerprint="${hash}" role="ROLE_ADMIN"/></UserAuthenticationFile>`;
  writeFileSync(file, readFileSync(file, 'utf8').replace('</UserAuthenticationFile>', entry));
}

it('enrolls a request of OpenSSL by curl, opens 8443 with the role of its entry, and a DELETE ends all of it', async () => {
  const device = await enroll(core, work, 'ada', PASSWORD);
  const isAdmin = '/Marti/api/util/isAdmin';
  expect((await asDevice(core, device, '/Marti/api/version')).status).toBe(200);
  expect((await asDevice(core, device, isAdmin)).status).toBe(403);
  enterAdministrator('ada', device);
  expect((await asDevice(core, device, isAdmin)).status).toBe(200);
  expect(await verdictOf(core, device.certificateFile)).toBe('OK');

  const kept = keptConnection(device);
  expect(await statusOver(kept, isAdmin)).toBe(200);
  const admin = await apiDevice(core, work);
  const deleted = await asDevice(core, admin, `/Marti/api/certadmin/cert/${device.hash}`, ['-X', 'DELETE']);
  expect([deleted.status, deleted.body.includes('revocationDate')]).toEqual([200, true]);
  expect(await statusOver(kept, isAdmin)).toBeUndefined();
  const again = await asDevice(core, device, isAdmin);
  expect([again.status, again.code === 0]).toEqual([0, false]);
  expect(await verdictOf(core, device.certificateFile)).toBe('certificate revoked');
  expect((await asDevice(core, admin, isAdmin)).status).toBe(200);
  kept.destroy();
});

it('enrolls a device and shuts it out by the commands of docs/enrollment.md', async () => {
  const directory = join(work, 'by-the-page');
  mkdirSync(directory);
  // Nobody is there to be asked for the password of a file.
  const commands = commandsOf('enrollment.md', [
    ['data/core', core.directory],
    ['https://127.0.0.1:8446', core.enrollment],
    ['https://127.0.0.1:8443', core.api],
    ['openssl pkcs12 -export', 'openssl pkcs12 -export -passout pass:of-my-own'],
  ]);
  const running = promisify(execFile)('bash', ['-c', commands], { cwd: directory });
  running.child.stdin?.end(`${PASSWORD}\n`);
  const { stdout } = await running;
  const shown = [
    '<nameEntry name="O" value="Holdfast"/>',
    'subject=O',
    'ada.pem: OK',
    '5.7-RELEASE',
    '"revocationDate"',
  ];
  expect(shown.filter((text) => !stdout.includes(text))).toEqual([]);
  expect(await verdictOf(core, join(directory, 'ada.pem'))).toBe('certificate revoked');
});

it('names its ports and the certificate of the admin API in stack.json', async () => {
  const { core: places, api_certificate: certificate, pids } = stack.file();
  expect(places).toEqual({
    api: `https://127.0.0.1:${8443 + stack.offset}`,
    enrollment: `https://127.0.0.1:${8446 + stack.offset}`,
    streaming: `tls://127.0.0.1:${8089 + stack.offset}`,
  });
  expect(certificate).toEqual({ file: join(stack.data, 'core/certs/files/svc_api.p12'), password: 'atakatak' });
  expect(pids.map(({ role }) => role)).toEqual(['supervisor', 'database', 'identity', 'core', 'management']);
});

it('is started again when it was killed, and refuses whom it refused before, and whom somebody dated in the table', async () => {
  const [device, byHand] = await Promise.all([
    enroll(core, work, 'ada', PASSWORD, 'before-the-kill'),
    enroll(core, work, 'ada', PASSWORD, 'by-hand'),
  ]);
  const admin = await apiDevice(core, work);
  await asDevice(core, admin, `/Marti/api/certadmin/cert/${device.hash}`, ['-X', 'DELETE']);
  await query(stack.file().database, `UPDATE certificate SET revocation_date = now() WHERE hash = '${byHand.hash}'`);
  const old = stack.pid('core');
  process.kill(old, 'SIGKILL');
  await eventually('the core is back', () => ![0, old].includes(stack.pid('core')) && lives(stack.pid('core')), 10_000);
  await eventually(
    'it answers',
    async () => (await asDevice(core, admin, '/Marti/api/version')).status === 200,
    10_000,
  );
  for (const refused of [device, byHand]) {
    expect((await asDevice(core, refused, '/Marti/api/version')).status).toBe(0);
    expect(await verdictOf(core, refused.certificateFile)).toBe('certificate revoked');
  }
});

it('waits for a database that does not answer, and says which, without its password', async () => {
  const nowhere: CoreHandover = {
    databaseUrl: 'postgres://martiuser:topsecret@127.0.0.1:1/cot',
    directory: work,
    addresses: [],
    apiPort: 1,
    enrollmentPort: 1,
    streamingPort: 1,
    serverNames: [],
    serverAddress: '',
    ldap: { url: '', bases: { core: '', web: '' } },
    roleGroups: [],
    trustedProxies: [],
    thinning: [],
  };
  const env = cleanEnvironment({ [CORE_VARIABLE]: JSON.stringify(nowhere) });
  const waiting = spawn(process.execPath, [join(home, 'dist/core.js')], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(waiting, 'close');
  let output = '';
  waiting.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const triesAgain = (): boolean => output.split('\n').filter((line) => line.includes('127.0.0.1:1')).length >= 2;
  await eventually('it asks again', triesAgain, 30_000).finally(() => waiting.kill('SIGTERM'));
  await ended;
  expect(output).toContain('"event":"database.awaited"');
  expect(output).not.toContain('topsecret');
});

it('ends by itself when its supervisor was killed before it listened', async () => {
  const alone = await ownCore(stack, join(work, 'alone'));
  await alone.startOrphaned();
  await expect(fetch(`${alone.api}/Marti/api/version`)).rejects.toThrow('fetch failed');
});

it('a start says which port of the core is taken', async () => {
  const other = await newStack();
  const holder = createServer().listen(8446 + other.offset, '127.0.0.1');
  const { code, output } = await other.start();
  expect([code, output.includes(`127.0.0.1:${8446 + other.offset} (enrollment) is in use`)]).toEqual([1, true]);
  holder.close();
  expect(await isFree(8443 + other.offset)).toBe(true);
});

describe('a core that is killed again and again', () => {
  let own: OwnCore;
  /** Certificates that were handed out, and those whose revocation was answered. */
  const handedOut: Device[] = [];
  const revoked: Device[] = [];
  /** A key and a request that all of them share. */
  let signed: Awaited<ReturnType<typeof signingRequest>>;
  let count = 0;

  async function enrollOne(): Promise<void> {
    const name = `kill-${count++}`;
    const { status, body } = await sendRequest(own, 'ada', PASSWORD, signed.requestFile, name);
    if (status === 200) handedOut.push({ keyFile: signed.keyFile, ...(await keptCertificate(work, name, body)) });
  }

  async function revokeOne(device: Device): Promise<void> {
    const admin = await apiDevice(own, work);
    const { status } = await asDevice(own, admin, `/Marti/api/certadmin/cert/${device.hash}`, ['-X', 'DELETE']);
    if (status === 200) revoked.push(device);
  }

  /**
   * The moment after the table knows of an enrollment or a revocation: files and answer are still
   * to come.
   */
  async function written(sql: postgres.Sql, request: Promise<unknown>): Promise<void> {
    const state = async (): Promise<string> =>
      JSON.stringify(await sql`SELECT count(*), count(revocation_date) FROM certificate`);
    const before = await state();
    let answered = false;
    void request.finally(() => (answered = true));
    while (!answered && (await state()) === before);
    await delay(Math.random() * 4);
  }

  it(`after signing or revoking was begun (${ROUNDS} times) forgets nothing and lets nobody in`, async () => {
    own = await ownCore(stack, join(work, 'own-core'));
    signed = await signingRequest(work, 'ada', 'kill');
    const sql = postgres(stack.file().database, { max: 1 });
    await own.start();
    await Promise.all([enrollOne(), enrollOne()]);
    for (let round = 0; round < ROUNDS; round++) {
      if (revoked.length === handedOut.length) await enrollOne();
      const victims = round % 2 === 0 ? handedOut.filter((device) => !revoked.includes(device)).slice(-1) : [];
      const busy = Promise.all(victims.length === 0 ? [enrollOne(), enrollOne()] : victims.map(revokeOne));
      await written(sql, busy);
      await own.kill();
      await busy;
      await own.start();
    }
    await sql.end();
    const rows = await query<{ hash: string; revoked: boolean }>(
      stack.file().database,
      'SELECT hash, revocation_date IS NOT NULL AS revoked FROM certificate',
    );
    const known = new Map(rows.map((row) => [row.hash, row.revoked]));
    const listed = await listedSerials(own);
    const wrong: string[] = [];
    await Promise.all(
      handedOut.map(async (device) => {
        const isRevoked = known.get(device.hash);
        const { status } = await asDevice(own, device, '/Marti/api/version');
        const inList = listed.includes(await serialOf(device.certificateFile));
        const verdict = await verdictOf(own, device.certificateFile);
        const fits =
          isRevoked === true
            ? !status && inList && verdict === 'certificate revoked'
            : isRevoked === false && status === 200 && !inList && verdict === 'OK';
        if (!fits)
          wrong.push(`${device.certificateFile}: row ${isRevoked}, ${status}, in the list ${inList}, ${verdict}`);
      }),
    );
    expect(wrong).toEqual([]);
    expect(revoked.filter(({ hash }) => known.get(hash) !== true)).toEqual([]);
    // Kills that came between the table and the answer: without them this would have shown nothing.
    const unanswered = handedOut.filter(({ hash }) => known.get(hash) === true).length - revoked.length;
    expect(unanswered).toBeGreaterThan(0);
    await own.kill();
  });
});
