import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StackError } from '@holdfast/kit/app-error';
import { Secret } from '@holdfast/kit/secret';
import { DAY_MS } from '@holdfast/kit/time';
import type { Backup, BackupState, Proof } from '../../../shared/backups/port.ts';
import { HttpBackups } from '../../../shared/backups/http.ts';
import { backupsContract, type BackupsUnderTest } from '../../../test/backups/contract.ts';
import { DirectoryTarget } from '../directory-target.ts';
import { backupApi, BackupWorker, type RunContext, type WorkerDeps } from '../service.ts';
import { archiveName } from '../target.ts';

const TOKEN = new Secret('0123456789abcdef0123');
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };

const proofOf = (level: Proof['level'], error: string | null = null): Proof => ({
  level,
  at: clock.toISOString(),
  seconds: 1,
  error,
  limit: null,
  checks: [],
});

let place = '';
let clock = new Date('2026-01-31T02:30:00Z');
let proofs = 0;

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'holdfast-service-'));
  clock = new Date('2026-01-31T02:30:00Z');
  proofs = 0;
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

/** The real service on a real directory; only the content of its archives is made up. */
function service(changes: Partial<WorkerDeps> = {}): BackupsUnderTest & { worker: BackupWorker } {
  const target = new DirectoryTarget(place);
  const take: WorkerDeps['take'] = async ({ history, requestedBy }, { report, signal }) => {
    const name = archiveName(clock);
    report({ name, phase: 'Copying cot_router', percent: 50 });
    await target.write(name, content(signal), { signal });
    const backup: Backup = {
      name,
      created_at: clock.toISOString(),
      seconds: 1,
      bytes: 30,
      sha256: 'ab'.repeat(32),
      stack: 'embedded',
      release: '0.1.0',
      history,
      rows: 1,
      ca_fingerprint: 'cd'.repeat(32),
      requested_by: requestedBy,
      permanent: false,
      proof: null,
    };
    await target.putSidecar(backup);
    return backup;
  };
  const worker = new BackupWorker({
    target,
    encryption: 'passphrase',
    proof: 'off',
    history: true,
    keep: { days: 30, count: 7 },
    take,
    prove: async () => {
      proofs += 1;
      await pause();
      return proofOf('serves');
    },
    now: () => clock,
    log: quiet,
    ...changes,
  });
  const api = backupApi(worker, TOKEN, quiet);
  const backups = new HttpBackups({
    url: 'http://127.0.0.1:8090',
    token: TOKEN,
    fetch: async (input, init) => api.request(input, init),
  });
  const ended = async (): Promise<void> => {
    while ((await backups.state()).running !== null) await pause();
  };
  return { backups, ended, worker };
}

async function* content(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  yield Buffer.from('age-encryption.org/v1\n');
  await pause();
  signal.throwIfAborted();
  yield Buffer.from('the rest');
}

const pause = async (): Promise<void> => new Promise((over) => setTimeout(over, 20));

async function after(changes: Partial<WorkerDeps>): Promise<BackupState> {
  const { backups, ended } = service(changes);
  await backups.start({ requestedBy: 'ada' });
  await ended();
  return backups.state();
}

/** A day passes, then a backup is made. */
async function daily(days: number, changes: Partial<WorkerDeps>): Promise<BackupState> {
  const { backups, ended } = service(changes);
  for (let day = 0; day < days; day++) {
    await backups.start({ requestedBy: 'schedule' });
    await ended();
    clock = new Date(clock.getTime() + DAY_MS);
  }
  return backups.state();
}

backupsContract('the service, in process', async () => service());

describe('the backup service', () => {
  it('answers nothing without its token', async () => {
    const { worker } = service();
    const api = backupApi(worker, TOKEN, quiet);
    for (const authorization of ['', 'Bearer', `Bearer ${TOKEN.reveal()}x`, `Basic ${TOKEN.reveal()}`]) {
      for (const path of ['/state', '/backups/x/archive', '/other'])
        expect((await api.request(path, { headers: { authorization } })).status).toBe(401);
    }
    const refused = await api.request('/backups', {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN.reveal()}` },
      body: '{"history":"yes"}',
    });
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'malformed' }]);
  });

  it('proves each backup when that is wanted, and records the level', async () => {
    const { backups } = await after({ proof: 'always' });
    expect([proofs, backups[0]?.proof?.level]).toEqual([1, 'serves']);
  });

  it('proves once a week when that is wanted, and again as long as no proof passed', async () => {
    await daily(15, { proof: 'weekly' });
    expect(proofs).toBe(3);
    rmSync(place, { recursive: true });
    place = mkdtempSync(join(tmpdir(), 'holdfast-service-'));
    let tries = 0;
    await daily(3, {
      proof: 'weekly',
      prove: async () => {
        tries += 1;
        return proofOf('decrypts', 'a table has too few rows');
      },
    });
    expect(tries).toBe(3);
  });

  it('keeps the level and the reason of a proof that failed, and shows it until one passes', async () => {
    const { backups, ended } = service({ proof: 'always', prove: failFirst() });
    await backups.start({ requestedBy: 'ada' });
    await ended();
    const state = await backups.state();
    expect(state.backups[0]?.proof).toMatchObject({ level: 'decrypts', error: 'a table has too few rows' });
    expect(state.last_failure).toMatchObject({ kind: 'proof', error: expect.stringContaining('too few rows') });
    await backups.prove(state.backups[0]?.name ?? '', { requestedBy: 'ada' });
    await ended();
    const later = await backups.state();
    expect([later.last_failure, later.backups[0]?.proof?.level]).toEqual([null, 'serves']);
  });

  it('counts a backup whose proof could not be done', async () => {
    const state = await after({
      proof: 'always',
      prove: () => Promise.reject(new StackError('Too little room for a proof.', 'free some space')),
    });
    expect(state.backups).toMatchObject([{ proof: null }]);
    expect(state.last_failure).toMatchObject({
      kind: 'proof',
      error: 'Too little room for a proof. Remedy: free some space.',
    });
  });

  it('shows a backup that failed, and leaves nothing of it', async () => {
    const take = async (_request: unknown, { report }: RunContext): Promise<never> => {
      report({ name: archiveName(clock) });
      throw new StackError('The disk is full.', 'free some space');
    };
    const state = await after({ take });
    expect([state.backups, state.last_failure]).toMatchObject([[], { kind: 'backup', name: archiveName(clock) }]);
    expect(readdirSync(place)).toEqual([]);
  });

  it('deletes what the keep rules say, but never the last proven one', async () => {
    let number = 0;
    const prove = async (): Promise<Proof> => ((number += 1) === 1 ? proofOf('serves') : proofOf('complete', 'no'));
    const state = await daily(9, { keep: { days: 2, count: 2 }, proof: 'always', prove });
    expect(state.backups.map(({ created_at: at }) => at.slice(0, 10))).toEqual([
      '2026-02-08',
      '2026-02-07',
      '2026-02-06',
      '2026-01-31',
    ]);
    expect(readdirSync(place)).toHaveLength(8);
  });

  it('is interrupted by a stop, and leaves nothing', async () => {
    const { backups, worker } = service();
    await backups.start({ requestedBy: 'ada' });
    await worker.stop();
    expect(readdirSync(place)).toEqual([]);
  });

  it('deletes what a killed backup left', async () => {
    writeFileSync(join(place, `.${archiveName(clock)}.partial`), 'half');
    const { backups } = await after({});
    expect(backups).toHaveLength(1);
    expect(readdirSync(place).toSorted()).toEqual([backups[0]?.name, `${backups[0]?.name}.json`]);
  });

  it('answers when the target is gone, says so, and recovers', async () => {
    const { backups, ended } = service();
    await backups.start({ requestedBy: 'ada' });
    await ended();
    const list = (await backups.state()).backups;
    rmSync(place, { recursive: true });
    const gone = await backups.state();
    expect(gone).toMatchObject({ target: { place, error: expect.stringContaining('does not exist') }, backups: list });
    await backups.start({ requestedBy: 'ada' });
    await ended();
    expect((await backups.state()).last_failure).toMatchObject({ kind: 'backup' });
  });
});

function failFirst(): WorkerDeps['prove'] {
  let first = true;
  return async () => {
    if (!first) return proofOf('serves');
    first = false;
    return proofOf('decrypts', 'a table has too few rows');
  };
}
