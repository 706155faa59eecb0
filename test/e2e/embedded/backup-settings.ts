// How each variable of backups changes what the backup service, the health module or the storage
// sees.

import { type ChildProcess, spawn } from 'node:child_process';
import { once as onceEmitted } from 'node:events';
import { mkdtempSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { backupPlan } from '@holdfast/backup/handover';
import { Secret } from '@holdfast/kit/secret';
import { HttpBackups } from '../../../shared/backups/http.ts';
import type { Backup } from '../../../shared/backups/port.ts';
import { loadSettings } from '../../../shared/settings/load.ts';
import type { SettingName } from '../../../shared/settings/table.ts';
import { cleanEnvironment, eventually, freeOffset, home, type TestStack } from './embedded.ts';
import { healthOf, listenOn } from './managed.ts';

const TOKEN = 'token-of-a-backup-service';
const KEY = { BACKUP_PASSPHRASE: 'a passphrase of these tests' };
const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
const S3_KEYS = { BACKUP_S3_ACCESS_KEY: 'ACCESSKEY', BACKUP_S3_SECRET_KEY: 'secret of the storage' };
const DAY_MS = 86_400_000;

const newTarget = (): string => mkdtempSync(join(tmpdir(), 'holdfast-backups-'));

/** A backup service of that stack with these settings. */
async function serve<T>(
  stack: TestStack,
  values: Record<string, string>,
  use: (backups: HttpBackups, url: string) => Promise<T>,
): Promise<T> {
  const { settings, problems } = loadSettings([{ source: 'environment', values }], 'embedded');
  expect(problems.filter(({ name }) => name.startsWith('BACKUP_'))).toEqual([]);
  const port = 8090 + (await freeOffset());
  const plan = backupPlan(home, port, { settings, token: TOKEN, data: stack.data });
  if (plan === undefined) throw new Error('BACKUP_TARGET is missing');
  const child: ChildProcess = spawn(join(home, 'node_modules/.bin/node'), [plan.program], {
    env: cleanEnvironment(plan.environment),
    stdio: 'ignore',
  });
  try {
    const answers = async (): Promise<boolean> => (await fetch(`${plan.url}/ping`).catch(() => undefined))?.ok === true;
    await eventually('the service answers', answers, 60_000);
    return await use(new HttpBackups({ url: plan.url, token: new Secret(TOKEN), fetch }), plan.url);
  } finally {
    child.kill('SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await onceEmitted(child, 'exit');
  }
}

/** Makes one backup without a proof beside three old ones, and says what is kept then. */
async function afterBackup(stack: TestStack, values: Record<string, string>): Promise<Backup[]> {
  const BACKUP_TARGET = newTarget();
  oldBackups(BACKUP_TARGET);
  return serve(stack, { BACKUP_TARGET, BACKUP_PROOF: 'off', ...KEY, ...values }, async (backups) => {
    await backups.start({ requestedBy: 'test' });
    await eventually('it is done', async () => (await backups.state()).running === null, 60_000);
    const { backups: kept, last_failure: failure } = await backups.state();
    expect(failure).toBeNull();
    return kept;
  });
}

/** Three archives of a hundred days ago. */
function oldBackups(target: string): void {
  for (const day of [1, 2, 3]) {
    const at = new Date(Date.now() - (100 + day) * DAY_MS);
    const name = `holdfast-old-${day}.tar.zst.age`;
    const backup: Backup = {
      name,
      created_at: at.toISOString(),
      seconds: 1,
      bytes: 3,
      sha256: '0'.repeat(64),
      stack: 'embedded',
      release: '0.1.0',
      history: true,
      rows: 1,
      ca_fingerprint: '0'.repeat(64),
      requested_by: 'test',
      permanent: false,
      proof: null,
    };
    writeFileSync(join(target, name), 'old');
    writeFileSync(join(target, `${name}.json`), JSON.stringify(backup));
    utimesSync(join(target, name), at, at);
  }
}

/** The Authorization header and path of the first request that the storage gets. */
async function storageRequest(stack: TestStack, values: Record<string, string>): Promise<string> {
  let first = '';
  const storage = listenOn((request, response) => {
    first ||= `${request.url ?? ''} ${request.headers.authorization ?? ''}`;
    response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
  });
  try {
    const place = { BACKUP_TARGET: 's3://bucket/place', BACKUP_S3_URL: await storage.url };
    await serve(stack, { ...place, ...KEY, ...S3_KEYS, ...values }, (backups) => backups.state());
    return first;
  } finally {
    storage.close();
  }
}

/** The header by which management asks a service at that address. */
async function serviceCredentials(values: Record<string, string>): Promise<string | undefined> {
  let given: string | undefined;
  const service = listenOn((request, response) => {
    given = request.headers.authorization;
    response.writeHead(503).end();
  });
  try {
    await healthOf({ BACKUP_TARGET: newTarget(), ...KEY, BACKUP_URL: await service.url, ...values }, 'backup');
    return given;
  } finally {
    service.close();
  }
}

/** With the backup service at that address. */
async function allowedSeconds(cron: string, url: string): Promise<unknown> {
  const place = { BACKUP_TARGET: newTarget(), BACKUP_URL: url, BACKUP_TOKEN: TOKEN };
  return (await healthOf({ ...place, ...KEY, BACKUP_CRON: cron }, 'backup')).data['allowed_seconds'];
}

/** The same promise at each call. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

/** `stack`: a running one. */
export function backupBehaviours(stack: () => TestStack): Partial<Record<SettingName, () => Promise<void>>> {
  const target = newTarget();
  const stateOf = (values: Record<string, string>) => async () =>
    serve(stack(), { BACKUP_TARGET: target, ...values }, (backups) => backups.state());
  const byPassphrase = once(stateOf(KEY));
  const forRecipient = once(stateOf({ BACKUP_RECIPIENT: RECIPIENT, BACKUP_PROOF: 'weekly' }));
  const defaults = once(() => afterBackup(stack(), {}));
  const oneFor200Days = once(() =>
    afterBackup(stack(), { BACKUP_KEEP_COUNT: '1', BACKUP_KEEP_DAYS: '200', BACKUP_HISTORY: 'false' }),
  );
  const request = once(() => storageRequest(stack(), {}));
  const credentials = once(() => serviceCredentials({ BACKUP_TOKEN: TOKEN }));
  return {
    BACKUP_TARGET: async () => {
      expect((await byPassphrase()).target?.place).toBe(target);
      expect((await healthOf({}, 'backup')).status).toBe('note');
    },
    BACKUP_PASSPHRASE: async () => expect((await byPassphrase()).encryption).toBe('passphrase'),
    BACKUP_RECIPIENT: async () => expect((await forRecipient()).encryption).toBe('recipient'),
    BACKUP_PROOF: async () => {
      expect((await byPassphrase()).proof).toBe('always');
      expect((await forRecipient()).proof).toBe('weekly');
    },
    BACKUP_HISTORY: async () => {
      const [withHistory] = await defaults();
      const [without] = await oneFor200Days();
      expect([withHistory?.history, without?.history]).toEqual([true, false]);
    },
    BACKUP_KEEP_DAYS: async () => {
      const few = { BACKUP_KEEP_COUNT: '1', BACKUP_KEEP_DAYS: '50' };
      expect(await oneFor200Days()).toHaveLength(4);
      expect(await afterBackup(stack(), few)).toHaveLength(1);
    },
    BACKUP_KEEP_COUNT: async () => {
      expect(await defaults()).toHaveLength(4);
      expect(await afterBackup(stack(), { BACKUP_KEEP_COUNT: '2' })).toHaveLength(2);
    },
    BACKUP_CRON: async () => {
      const [nightly, hourly] = await serve(stack(), { BACKUP_TARGET: target, ...KEY }, async (_, url) => [
        await allowedSeconds('0 30 2 * * ?', url),
        await allowedSeconds('0 0 * * * ?', url),
      ]);
      expect(Number(nightly)).toBeGreaterThan(Number(hourly));
    },
    BACKUP_S3_URL: async () => expect(await request()).toMatch(/^\/bucket/),
    BACKUP_S3_REGION: async () => {
      expect(await request()).toMatch(/\/us-east-1\/s3\/aws4_request/);
      expect(await storageRequest(stack(), { BACKUP_S3_REGION: 'eu-9' })).toMatch(/\/eu-9\/s3\/aws4_request/);
    },
    BACKUP_S3_ACCESS_KEY: async () => expect(await request()).toMatch(/Credential=ACCESSKEY\//),
    BACKUP_S3_SECRET_KEY: async () => {
      expect(await request()).toMatch(/Signature=[0-9a-f]{64}/);
      expect(await request()).not.toContain(S3_KEYS.BACKUP_S3_SECRET_KEY);
    },
    BACKUP_URL: async () => expect(await credentials()).toBeDefined(),
    BACKUP_TOKEN: async () => expect(await credentials()).toBe(`Bearer ${TOKEN}`),
  };
}
