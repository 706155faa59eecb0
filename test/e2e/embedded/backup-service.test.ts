// The backup service of a running stack: it makes backups and proves them, and survives broken
// archives, a missing target and kill -9.

import { spawnSync } from 'node:child_process';
import {
  closeSync,
  createReadStream,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { beforeAll, describe, expect, it } from 'vitest';
import { archiveBytes, entriesOf } from '@holdfast/backup/archive';
import { type Manifest, MANIFEST_NAME } from '@holdfast/backup/manifest';
import { Secret } from '@holdfast/kit/secret';
import { HttpBackups } from '../../../shared/backups/http.ts';
import type { Backup, BackupState } from '../../../shared/backups/port.ts';
import { backupsContract, type BackupsUnderTest } from '../../backups/contract.ts';
import { hasS3Server, startS3Server } from '../../../packages/backup/test/s3-server.ts';
import {
  eventually,
  lives,
  newStack,
  type Outcome,
  outcomeOf,
  query,
  run,
  secretsOf,
  type TestStack,
} from './embedded.ts';

const PROOF_WITHIN_MS = 300_000;
const PASSPHRASE = 'only-for-tests: correct horse battery';

let stack: TestStack;
let target = '';
let backups: HttpBackups;

const idle = async (): Promise<BackupState> => {
  let state: BackupState | undefined;
  await eventually(
    'nothing runs',
    async () => {
      // A service that was killed is back after a moment.
      state = await backups.state().catch(() => undefined);
      return state?.running === null;
    },
    PROOF_WITHIN_MS,
  );
  return state as unknown as BackupState;
};
const newest = async (): Promise<Backup> => {
  const [first] = (await backups.state()).backups;
  if (first === undefined) throw new Error('there is no backup');
  return first;
};
const isProving = async (): Promise<boolean> => (await backups.state()).running?.kind === 'proof';
const prove = async (name: string): Promise<Backup> => {
  await backups.prove(name, { requestedBy: 'ada' });
  const { backups: all } = await idle();
  const found = all.find((each) => each.name === name);
  if (found === undefined) throw new Error(`${name} is gone`);
  return found;
};
const scratch = (): string => join(stack.data, 'proof');
const coreLog = (): string => join(scratch(), 'data/logs/core.log');
/** Processes of scratch instances and proofs of this stack. */
const strays = (): string[] =>
  readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        const [place, environment] = [`/proc/${pid}/cwd`, `/proc/${pid}/environ`];
        const belongs = line.includes(scratch()) || readFileSync(environment, 'utf8').includes(scratch());
        return belongs && existsSync(place) ? [line] : [];
      } catch {
        return [];
      }
    });
/** Of the running stack: its processes and its rows. */
const production = async (): Promise<unknown> => ({
  pids: stack.file().pids,
  secrets: readFileSync(join(stack.data, 'secrets.json'), 'utf8'),
  certificates: readdirSync(join(stack.data, 'core/certs/files')).toSorted(),
  tokens: await query(stack.file().database, `SELECT count(*) FROM cot_router WHERE uid LIKE 'PROOF-%'`),
});

beforeAll(async () => {
  stack = await newStack();
  target = join(stack.data, '../target');
  mkdirSync(target);
  const env = { BACKUP_TARGET: target, BACKUP_PASSPHRASE: PASSPHRASE, BACKUP_PROOF: 'off' };
  const { code, output } = await stack.start([], { env });
  expect([code, output]).toEqual([0, expect.stringContaining('backup service at http://127.0.0.1:')]);
  backups = new HttpBackups({
    url: `http://127.0.0.1:${8090 + stack.offset}`,
    token: new Secret(secretsOf(stack)['BACKUP_TOKEN'] ?? ''),
    fetch,
  });
  await query(
    stack.file().database,
    `INSERT INTO cot_router (uid, cot_type, servertime) SELECT 'PROOF-' || n, 'a-f-G', now() FROM generate_series(1, 5000) n`,
  );
  // Somebody is signed in to the console.
  await query(
    stack.file().state_database,
    `INSERT INTO session (id, digest, username, username_key, epoch, expires_at, address, user_agent)
     VALUES (gen_random_uuid(), 'digest', 'ada', 'ada', 0, now() + interval '1 day', '127.0.0.1', 'a browser')`,
  );
});

backupsContract(
  'the service of a running stack',
  async (): Promise<BackupsUnderTest> => ({ backups, ended: async () => void (await idle()) }),
  PROOF_WITHIN_MS,
);

// At the lowest priority: beside other tests a proof takes its time.
describe('a proof', { timeout: PROOF_WITHIN_MS }, () => {
  it('ends when its own process is killed', async () => {
    const { name } = await newest();
    await backups.prove(name, { requestedBy: 'ada' });
    await eventually('the scratch core runs', () => existsSync(coreLog()), 120_000);
    const pid = /"event":"proof.started".*"pid":(\d+)/.exec(
      readFileSync(join(stack.data, 'logs/backup.log'), 'utf8').split('\n').toReversed().join('\n'),
    )?.[1];
    process.kill(Number(pid), 'SIGKILL');
    const { last_failure: failure } = await idle();
    expect(failure).toMatchObject({ kind: 'proof', name, error: expect.stringContaining('by signal SIGKILL') });
  });

  it('deletes what a killed one left, and reaches "serves" in a scratch instance without touching the stack', async () => {
    const before = await production();
    const { name, rows } = await newest();
    const left = statSync(coreLog()).birthtimeMs;
    await backups.prove(name, { requestedBy: 'ada' });
    const isNew = (): boolean => existsSync(coreLog()) && statSync(coreLog()).birthtimeMs > left;
    await eventually('another scratch core runs', isNew, 120_000);
    expect(strays().some((line) => /postgres/.test(line))).toBe(true);
    const nice = spawnSync('ps', ['-eo', 'ni,args'], { encoding: 'utf8' }).stdout.split('\n');
    expect(nice.filter((line) => line.includes(`${scratch()}/data`)).every((line) => /^\s*19 /.test(line))).toBe(true);
    const {
      backups: [found],
      last_failure: failure,
    } = await idle();
    expect(failure).toBeNull();
    expect(found?.proof).toMatchObject({ level: 'serves', error: null, limit: null });
    expect(found?.proof?.checks.map(({ name: check, ok }) => [check, ok])).toEqual(
      [
        'exists',
        'complete',
        'decrypts',
        'restores',
        'CA',
        'start',
        'known event',
        'sign-in',
        'enrollment',
        'device',
      ].map((check) => [check, true]),
    );
    expect(rows).toBeGreaterThan(5000);
    expect([existsSync(scratch()), strays()]).toEqual([false, []]);
    expect(await production()).toEqual(before);
  });

  it('ends with the service, however that ends, and leaves nothing', async () => {
    const { name } = await newest();
    await backups.prove(name, { requestedBy: 'ada' });
    await eventually('the scratch database runs', () => existsSync(join(scratch(), 'data/pgdata/PG_VERSION')), 120_000);
    process.kill(stack.pid('backup'), 'SIGKILL');
    await eventually('the proof is gone', () => strays().length === 0, 30_000);
    await eventually('its directory is gone', () => !existsSync(scratch()), 30_000);
    expect((await idle()).backups[0]).toMatchObject({ name, proof: { level: 'serves' } });
  });

  it('of a changed or cut archive stays at its level, and says why', async () => {
    const { name, bytes } = await newest();
    const path = join(target, name);
    const whole = readFileSync(path);
    flip(path, bytes - 100);
    expect((await prove(name)).proof).toMatchObject({ level: 'exists', error: expect.stringContaining('SHA-256') });
    expect((await backups.state()).last_failure).toMatchObject({ kind: 'proof', name });
    // As if somebody had recorded the changed archive: its content tells.
    const sidecar = `${path}.json`;
    const facts = readFileSync(sidecar, 'utf8');
    const changed = createHash('sha256').update(readFileSync(path)).digest('hex');
    writeFileSync(sidecar, JSON.stringify({ ...(JSON.parse(facts) as Backup), sha256: changed }));
    expect((await prove(name)).proof).toMatchObject({ level: 'complete', error: expect.stringContaining('damaged') });
    writeFileSync(sidecar, facts);
    truncateSync(path, bytes - 1);
    expect((await prove(name)).proof).toMatchObject({ level: null, error: expect.stringContaining('bytes') });
    writeFileSync(path, whole);
    await withOneRowLess(path);
    expect((await prove(name)).proof).toMatchObject({
      level: 'decrypts',
      error: expect.stringMatching(/cot_router has \d+ rows instead of \d+/),
    });
    writeFileSync(sidecar, facts);
    writeFileSync(path, whole);
  });

  /** Whole and signed in every way, but its manifest counts a row that is not there. */
  async function withOneRowLess(path: string): Promise<void> {
    const key = { passphrase: new Secret(PASSPHRASE) };
    const entries: { name: string; content: Buffer; mode: number; directory: boolean }[] = [];
    for await (const { name, content, mode, directory } of entriesOf({ open: async () => createReadStream(path), key }))
      entries.push({ name, content: await buffer(Readable.from(content)), mode, directory });
    const manifest = JSON.parse(entries.pop()?.content.toString() ?? '') as Manifest;
    for (const { tables } of manifest.databases)
      for (const table of tables) if (table.name === 'cot_router') table.rows++;
    const bytes = archiveBytes(key, new Date(), async (writer) => {
      for (const { name, content, mode, directory } of entries)
        await (directory ? writer.addDirectory(name, mode) : writer.add(name, content, mode));
      await writer.add(MANIFEST_NAME, Buffer.from(JSON.stringify(manifest)));
    });
    const changed = await buffer(Readable.from(bytes));
    writeFileSync(path, changed);
    const facts = JSON.parse(readFileSync(`${path}.json`, 'utf8')) as Backup;
    const sha256 = createHash('sha256').update(changed).digest('hex');
    writeFileSync(`${path}.json`, JSON.stringify({ ...facts, sha256, bytes: changed.length, rows: facts.rows + 1 }));
  }
});

describe('backup.sh', { timeout: PROOF_WITHIN_MS }, () => {
  const backUp = async (args: string[], env: Record<string, string> = {}): Promise<Outcome> => {
    const passphrase = join(target, '../passphrase');
    writeFileSync(passphrase, PASSPHRASE, { mode: 0o600 });
    const key = args.includes('--recipient') ? [] : ['--passphrase-file', passphrase];
    return outcomeOf(run('backup.sh', ['--data', stack.data, ...key, ...args], { env }));
  };

  const newRecipient = async (): Promise<string> => identityToRecipient(await generateX25519Identity());

  it('proves that a backup for a recipient is complete, and says why no more', async () => {
    const directory = join(target, '../for-recipient');
    mkdirSync(directory);
    const { code, output } = await backUp(['--output', directory, '--recipient', await newRecipient()]);
    expect([code, output]).toEqual([0, expect.stringMatching(/Proven: it is complete[^]*private key can open it/)]);
    const [sidecar = ''] = readdirSync(directory).filter((name) => name.endsWith('.json'));
    const { proof } = JSON.parse(readFileSync(join(directory, sidecar), 'utf8')) as Backup;
    expect(proof).toMatchObject({ level: 'complete', limit: { level: 'complete' }, error: null });
  });

  it.skipIf(!hasS3Server)('keeps a backup in S3-compatible storage and proves it there (needs versitygw)', async () => {
    const server = await startS3Server();
    try {
      const { url = '', accessKey, secretKey } = server.storage;
      const env = {
        BACKUP_S3_URL: url,
        BACKUP_S3_ACCESS_KEY: accessKey.reveal(),
        BACKUP_S3_SECRET_KEY: secretKey.reveal(),
      };
      // Read back as a whole for that; what follows does not know where it came from.
      const key = ['--recipient', await newRecipient()];
      const { code, output } = await backUp(['--output', 's3://backups/one', ...key], env);
      expect([code, output]).toEqual([0, expect.stringContaining('Proven: it is complete')]);
      const wrong = await backUp(['--output', 's3://missing/one', ...key], env);
      expect([wrong.code, wrong.output]).toEqual([
        1,
        expect.stringContaining('The bucket of s3://missing/one does not exist'),
      ]);
      expect(wrong.output + output).not.toContain(secretKey.reveal());
    } finally {
      await server.stop();
    }
  });
});

describe('the service', () => {
  it('is back after kill -9 in the middle of a backup, and the next run leaves nothing of it', async () => {
    await query(
      stack.file().database,
      `INSERT INTO cot_router (uid, cot_type, detail, servertime) SELECT 'FILL-' || n, 'a-f-G',
        (SELECT string_agg(md5(n::text || k), '') FROM generate_series(1, 20) k), now() FROM generate_series(1, 60000) n`,
    );
    const before = (await backups.state()).backups.length;
    const pid = stack.pid('backup');
    await backups.start({ requestedBy: 'ada' });
    await eventually(
      'it is being written',
      () => partials().length > 0 && statSync(partials()[0] ?? '').size > 0,
      60_000,
    );
    process.kill(pid, 'SIGKILL');
    await eventually('another one runs', () => stack.pid('backup') !== pid && lives(stack.pid('backup')), 60_000);
    const { backups: all } = await idle();
    expect(all).toHaveLength(before);
    await backups.start({ requestedBy: 'ada' });
    expect((await idle()).backups).toHaveLength(before + 1);
    expect(partials()).toEqual([]);
  });

  it('says that its target is away, goes on, and uses it again when it is back', async () => {
    const { length } = (await backups.state()).backups;
    renameSync(target, `${target}.away`);
    await backups.start({ requestedBy: 'ada' });
    expect(await idle()).toMatchObject({
      target: { error: expect.stringContaining('does not exist') },
      last_failure: { kind: 'backup', error: expect.stringContaining('does not exist') },
    });
    renameSync(`${target}.away`, target);
    await eventually('the target is back', async () => (await backups.state()).target?.error === null, 60_000);
    expect((await backups.state()).backups).toHaveLength(length);
  });

  it('keeps the passphrase and the token out of arguments and logs', async () => {
    const logs = readdirSync(join(stack.data, 'logs')).map((name) =>
      readFileSync(join(stack.data, 'logs', name), 'utf8'),
    );
    const lines = spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).stdout;
    for (const secret of [PASSPHRASE, secretsOf(stack)['BACKUP_TOKEN'] ?? '-'])
      expect([...logs, lines].some((text) => text.includes(secret))).toBe(false);
    expect(await isProving()).toBe(false);
  });
});

function flip(path: string, at: number): void {
  const byte = readFileSync(path)[at] ?? 0;
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.from([byte ^ 1]), 0, 1, at);
  closeSync(file);
}

function partials(): string[] {
  return readdirSync(target)
    .filter((name) => name.endsWith('.partial'))
    .map((name) => join(target, name));
}
