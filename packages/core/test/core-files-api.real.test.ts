// Files on 8443 with the real tables; and by curl over TLS: whole, in parts, broken off, many at
// once, without the database.

import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { coreFilesContract, sha256 } from '../../../test/core/core-files-contract.ts';
import { type TestCertificate, type TestPki, testPki } from '../../../test/core/fake-test-pki.ts';
import { eventually, freeOffset } from '../../../test/e2e/embedded/embedded.ts';
import { emptyDatabase } from '../../../test/e2e/embedded/empty-database.ts';
import { collectGarbage } from '../../../test/support/garbage.ts';
import { createAdminApi } from '../admin/app.ts';
import { type CorePorts, createCorePorts } from '../core-ports.ts';
import { callerOf } from '../http/route.ts';
import type { RunSql } from '../store/certificates.ts';
import { activeGroups, groupStore } from '../store/groups.ts';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '../store/migrations/index.ts';
import { resourceStore, resourceWriter } from '../store/resources.ts';
import { createLiveConnections } from '../tls/connections.ts';
import { adminWorld } from './fake-core-admin.ts';

const { url, inDatabase } = emptyDatabase();
const directory = mkdtempSync(join(tmpdir(), 'holdfast-files-'));
const execute = promisify(execFile);
const database = { called: 'the database', variable: 'its URL' };
let kept: RunSql;
let keptLong: RunSql;
let isUnavailable = false;
const run: RunSql = (use) =>
  isUnavailable ? Promise.reject(new AppError('unavailable', 'The database does not answer')) : kept(use);
let world: ReturnType<typeof adminWorld>;
let pki: TestPki;
let ports: CorePorts;
let port = 0;
const devices = new Map<string, TestCertificate>();

function newWorld(): ReturnType<typeof adminWorld> {
  return adminWorld({
    resources: resourceStore(run),
    resourceWriter: resourceWriter((use) => keptLong(use)),
    groups: groupStore(run),
    activeGroups: activeGroups(run),
  });
}

/** Without what only waits to be swept. */
function heldBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

/** Ports whose connections end when nothing comes for so long. */
async function listening(silentMs: number): Promise<{ port: number; ports: CorePorts }> {
  const api = createAdminApi(world.options);
  const users = { roleOf: () => 'ROLE_ANONYMOUS' as const };
  const place = (file: string): string => join(pki.directory, file);
  const offset = await freeOffset();
  const made = createCorePorts({
    files: { ca: place('ca.pem'), certificate: place('server.pem'), key: place('server.key') },
    addresses: ['127.0.0.1'],
    ports: { api: 8443 + offset, enrollment: 8446 + offset, streaming: 8089 + offset },
    api: (request, connection) =>
      connection.certificate === undefined
        ? new Response(null, { status: 401 })
        : api(request, connection, callerOf(connection.certificate, users)),
    enrollment: () => new Response(null, { status: 404 }),
    stream: ({ socket }) => socket.destroy(),
    revocations: { isRevoked: () => false },
    live: createLiveConnections(),
    log: world.log,
    now: () => new Date(),
    limits: { silentMs },
  });
  await made.listen();
  return { port: 8443 + offset, ports: made };
}

beforeAll(async () => {
  const secret = new Secret(url());
  kept = keptDatabase(secret, { ...database, name: 'files-test' });
  keptLong = keptDatabase(secret, { ...database, name: 'files-test-long', withinMs: 60_000 });
  await kept((sql) => migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED));
  world = newWorld();
  for (const [name, group] of Object.entries({ ada: 'core_Ops', bob: 'core_Ops', eve: 'core_Other' })) {
    world.people.addGroup(group);
    world.people.addPerson(name, 'x').groups.push(group);
  }
  pki = await testPki();
  await pki.server();
  for (const name of ['ada', 'bob', 'eve']) devices.set(name, await pki.client(name));
  ({ port, ports } = await listening(30_000));
});
afterAll(async () => {
  await ports?.close(100);
  world?.end();
  for (const made of [directory, pki?.directory])
    if (made !== undefined) rmSync(made, { recursive: true, force: true });
});

coreFilesContract('on PostgreSQL', async () => newWorld());

function curlArguments(path: string, args: readonly string[], as: string, to = port): string[] {
  const { certificateFile, keyFile } = devices.get(as) ?? pki.ca;
  const tls = ['--cacert', pki.ca.certificateFile, '--cert', certificateFile, '--key', keyFile];
  return ['-sS', '--max-time', '60', ...tls, ...args, `https://127.0.0.1:${to}${path}`];
}

/** What curl says: the status and the body. */
async function curl(path: string, args: readonly string[] = [], as = 'ada'): Promise<{ status: number; text: string }> {
  const { stdout } = await execute('curl', curlArguments(path, ['-w', '\n%{http_code}', ...args], as));
  const end = stdout.lastIndexOf('\n');
  return { status: Number(stdout.slice(end + 1)), text: stdout.slice(0, end) };
}

function newFile(name: string, size: number): { path: string; hash: string; bytes: Buffer } {
  const bytes = randomBytes(size);
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return { path, hash: sha256(bytes), bytes };
}

const spool = (): string => join(world.dataDir, 'uploads');
const spooled = (): string[] => readdirSync(spool());
const rowsOf = async (hash: string): Promise<number> =>
  (await inDatabase(`SELECT FROM resource WHERE hash = '${hash}'`)).length;
const untilSpooled = (count: number): Promise<void> =>
  eventually(`${count} in the spool`, async () => spooled().length === count, 15_000);

describe('by curl', () => {
  it.each([0, 1, 5_000_000])('%i bytes come back as they were, raw and in a form', async (size) => {
    for (const how of ['raw', 'form'] as const) {
      const { path, hash, bytes } = newFile(`${how}-${size}`, size === 0 ? 0 : size);
      const sent =
        how === 'raw'
          ? await curl('/Marti/sync/upload?name=x.bin', ['--data-binary', `@${path}`])
          : await curl(`/Marti/sync/missionupload?filename=x.zip&hash=${hash}`, ['-F', `assetfile=@${path}`]);
      expect(sent.status).toBe(200);
      const got = join(directory, 'got');
      expect(await curl(`/Marti/sync/content?hash=${hash}`, ['-o', got], 'bob')).toMatchObject({ status: 200 });
      expect(statSync(got).size).toBe(size);
      const { stdout } = await execute('sha256sum', [got]);
      expect(stdout.slice(0, 64)).toBe(hash);
      expect((await curl(`/Marti/sync/content?hash=${hash}`, [], 'eve')).status).toBe(404);
      if (size < 10) continue;
      await curl(`/Marti/sync/content?hash=${hash}`, ['-o', got, '-r', '1000000-1999999']);
      expect((await execute('sha256sum', [got])).stdout.slice(0, 64)).toBe(
        sha256(bytes.subarray(1_000_000, 2_000_000)),
      );
    }
    expect([spooled(), statSync(spool()).mode & 0o777]).toEqual([[], 0o700]);
  });

  it('leave nothing when they are broken off', async () => {
    const { path, hash } = newFile('aborted', 5_000_000);
    for (const how of [
      ['--data-binary', `@${path}`],
      ['-F', `assetfile=@${path}`],
    ]) {
      const child = spawn('curl', curlArguments('/Marti/sync/upload?name=x', ['--limit-rate', '2M', ...how], 'ada'));
      await untilSpooled(1);
      expect(statSync(join(spool(), spooled()[0] ?? '')).mode & 0o777).toBe(0o600);
      child.kill('SIGKILL');
      await once(child, 'close');
      await untilSpooled(0);
    }
    expect(await rowsOf(hash)).toBe(0);
  });

  it('leave nothing when they stand still', async () => {
    const impatient = await listening(2_000);
    const still = spawn(
      'curl',
      curlArguments('/Marti/sync/upload?name=x', ['-T', '.', '-X', 'POST'], 'ada', impatient.port),
    );
    still.stdin.write(randomBytes(100_000));
    await untilSpooled(1);
    await untilSpooled(0);
    expect(still.exitCode).toBeNull();
    still.kill('SIGKILL');
    await once(still, 'close');
    await impatient.ports.close(100);
    expect(spooled()).toEqual([]);
  });

  it('20 at once cost no memory, and all arrive', async () => {
    const files = Array.from({ length: 20 }, (_, index) => newFile(`many-${index}`, 5_900_000).path);
    const hashes = files.map((path) => execute('sha256sum', [path]));
    await Promise.all(hashes);
    const before = heldBytes();
    let most = 0;
    let watch: NodeJS.Timeout | undefined;
    // Looking stops the server, which is in this process: it gets nine tenths of the time, however
    // slow the machine is.
    const look = (): void => {
      const began = performance.now();
      most = Math.max(most, heldBytes() - before);
      watch = setTimeout(look, 50 + 9 * (performance.now() - began));
    };
    look();
    const answers = await Promise.all(
      files.map((path, index) =>
        curl('/Marti/sync/missionupload?filename=x.zip', ['-F', `assetfile=@${path}`], index % 2 === 0 ? 'ada' : 'bob'),
      ),
    );
    clearTimeout(watch);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    for (const hash of hashes) expect(await rowsOf((await hash).stdout.slice(0, 64))).toBe(1);
    expect(most).toBeLessThan(80 * 1024 * 1024);
  });

  it('are a 503 while the database is away in the middle of an upload, and nothing is left', async () => {
    const { path, hash } = newFile('cut', 5_900_000);
    const waiting = "application_name = 'files-test-long' AND wait_event_type = 'Lock'";
    const pids = (): Promise<object[]> => inDatabase(`SELECT pid FROM pg_stat_activity WHERE ${waiting}`);
    const upload = await withDatabase(new Secret(url()), 'files-test-lock', 60_000, (sql) =>
      sql.begin(async (transaction) => {
        await transaction`LOCK TABLE resource IN SHARE MODE`;
        const answer = curl('/Marti/sync/upload?name=x', ['--data-binary', `@${path}`]);
        await eventually('the upload waits in its transaction', async () => (await pids()).length === 1, 15_000);
        await inDatabase(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${waiting}`);
        return answer;
      }),
    );
    expect(upload.status).toBe(503);
    expect([spooled(), await rowsOf(hash)]).toEqual([[], 0]);
    expect((await curl('/Marti/sync/upload?name=x', ['--data-binary', `@${path}`])).status).toBe(200);
  });

  it('end before their end when the database goes away in the middle of a download, and go on later', async () => {
    const { hash, bytes } = newFile('half', 40_000_000);
    const [row] = await inDatabase<{ groups: string }>('SELECT groups::text AS groups FROM resource LIMIT 1');
    const places = [(row?.groups.length ?? 0) - 1 - (row?.groups.indexOf('1') ?? 0)];
    const text = { uid: 'half', name: 'half', filename: 'half', mimeType: '', submitter: '', creatorUid: '', tool: '' };
    const known = { submissionTime: new Date(), expiration: -1, keywords: [], location: null, altitude: null };
    const parts = async function* (size: number): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    };
    const file = { ...text, ...known, hash, sizeBytes: bytes.length, places };
    await world.options.resourceWriter.add(file, { parts });
    const got = join(directory, 'half-got');
    const args = curlArguments(`/Marti/sync/content?hash=${hash}`, ['--limit-rate', '10M', '-o', got], 'ada');
    const child = spawn('curl', args);
    await eventually('the download runs', () => existsSync(got) && statSync(got).size > 0, 10_000);
    isUnavailable = true;
    const [code] = (await once(child, 'close')) as [number];
    expect((await curl(`/Marti/sync/content?hash=${hash}`)).status).toBe(503);
    isUnavailable = false;
    expect([18, 56]).toContain(code);
    expect(world.log.events).toContainEqual(expect.objectContaining({ event: 'file.broken_off' }));
    const { size } = statSync(got);
    expect(size).toBeLessThan(40_000_000);
    await curl(`/Marti/sync/content?hash=${hash}`, ['-C', '-', '-o', got]);
    expect((await execute('sha256sum', [got])).stdout.slice(0, 64)).toBe(sha256(bytes));
  });
});
