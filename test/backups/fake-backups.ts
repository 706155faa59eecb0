// The backup service in memory, and the same over its HTTP API.

import { Hono } from 'hono';
import { AppError } from '@holdfast/kit/app-error';
import type { Backup, BackupRun, Backups, BackupState, Proof, ProofLevel } from '../../shared/backups/port.ts';

export interface FakeBackups extends Backups {
  /** Change it to change the world. */
  the: BackupState;
  /** Set to make every call reject with it. */
  error: AppError | undefined;
  /** The methods that were called, in order. */
  calls: string[];
  /** Adds an archive, newest first. */
  add: (more?: Partial<Backup>) => Backup;
  /** Ends the run: a backup is there, a proof has its level. With an error it failed. */
  end: (how?: { error?: string; level?: ProofLevel; by?: string }) => void;
  archives: Map<string, Uint8Array<ArrayBuffer>>;
}

/** As archives are called. */
export function archiveName(at: string): string {
  return `holdfast-${at.slice(0, 19).replaceAll(/[-:]/g, '')}Z.tar.zst.age`;
}

export function proofOf(at: string, level: ProofLevel = 'serves', more: Partial<Proof> = {}): Proof {
  const error = level === 'serves' ? null : `The next level after ${level} failed.`;
  return {
    level,
    at,
    seconds: 42,
    error,
    limit: null,
    checks: [{ name: level, ok: true, detail: 'as expected' }],
    ...more,
  };
}

export function fakeBackups(now: () => Date): FakeBackups {
  const the: BackupState = {
    target: { kind: 'directory', place: '/mnt/backups', free_bytes: 500e9, error: null },
    encryption: 'passphrase',
    proof: 'off',
    running: null,
    last_failure: null,
    backups: [],
  };
  let requestedBy = '';
  let history = true;

  const open = (what: string): void => {
    fake.calls.push(what);
    if (fake.error !== undefined) throw fake.error;
  };
  const find = (name: string): Backup => {
    const found = the.backups.find((each) => each.name === name);
    if (found === undefined) throw new AppError('not_found', `There is no backup '${name}'.`);
    return found;
  };
  const begin = (kind: BackupRun['kind'], name: string | null, by: string): BackupRun => {
    if (the.running !== null) throw new AppError('conflict', `A ${the.running.kind} is already running.`);
    if (the.target === null) throw new AppError('not_supported', 'BACKUP_TARGET is not set.');
    requestedBy = by;
    const figures = { percent: null, bytes_per_second: null, seconds_left: null };
    the.running = { kind, name, started_at: now().toISOString(), phase: `Starting the ${kind}`, ...figures };
    return { ...the.running };
  };

  const fake: FakeBackups = {
    the,
    error: undefined,
    calls: [],
    archives: new Map(),
    add(more = {}) {
      const at = more.created_at ?? now().toISOString();
      const backup: Backup = {
        name: archiveName(at),
        created_at: at,
        seconds: 61,
        bytes: 68e6,
        sha256: 'ab'.repeat(32),
        stack: 'embedded',
        release: '1.2.3',
        history: true,
        rows: 123_456,
        ca_fingerprint: 'cd'.repeat(32),
        requested_by: 'schedule',
        permanent: false,
        proof: null,
        ...more,
      };
      the.backups = [backup, ...the.backups].toSorted((a, b) => b.created_at.localeCompare(a.created_at));
      fake.archives.set(backup.name, new TextEncoder().encode(`age-encryption.org/v1 ${backup.name}`));
      return backup;
    },
    end({ error, level = 'serves', by = requestedBy } = {}) {
      const run = the.running;
      if (run === null) throw new Error('nothing runs');
      the.running = null;
      if (error !== undefined) {
        the.last_failure = { kind: run.kind, at: now().toISOString(), name: run.name, error };
        return;
      }
      if (run.kind === 'backup') fake.add({ requested_by: by, history, created_at: run.started_at });
      else find(run.name ?? '').proof = proofOf(now().toISOString(), level);
      if (the.last_failure?.kind === run.kind) the.last_failure = null;
    },
    async state() {
      open('state');
      return structuredClone(the);
    },
    async start(request) {
      open('start');
      history = request.history ?? true;
      return begin('backup', null, request.requestedBy);
    },
    async prove(name, { requestedBy: by }) {
      open('prove');
      find(name);
      return begin('proof', name, by);
    },
    async setPermanent(name, permanent) {
      open('setPermanent');
      const found = find(name);
      found.permanent = permanent;
      return structuredClone(found);
    },
    async read(name) {
      open('read');
      find(name);
      const bytes = fake.archives.get(name) ?? new Uint8Array();
      return { body: new Response(bytes).body ?? new ReadableStream(), bytes: bytes.length };
    },
  };
  return fake;
}

/** With a backup of the night before `NOW` that serves. */
export function provenBackups(now: () => Date): FakeBackups {
  const backups = fakeBackups(now);
  const created = '2026-03-04T02:30:00.000Z';
  backups.the.proof = 'always';
  backups.add({ created_at: created, proof: proofOf(created) });
  return backups;
}

export const TOKEN = 'Xk3vT8mQzR5nWc2Lp7Bd';

/** Serves a port over the HTTP API of the backup service. */
export function serviceOver(backups: Backups): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    if (c.req.header('authorization') !== `Bearer ${TOKEN}`)
      return c.json({ code: 'unauthenticated', message: 'The token is not BACKUP_TOKEN.' }, 401);
    return next();
  });
  app.onError((error, c) => {
    const statuses: Record<string, 404 | 409 | 503> = { not_found: 404, conflict: 409, unavailable: 503 };
    const code = error instanceof AppError ? error.code : 'internal';
    return c.json({ code, message: error.message }, statuses[code] ?? 500);
  });
  app.get('/state', async (c) => c.json(await backups.state()));
  app.post('/backups', async (c) => {
    const { history, requested_by: requestedBy } = await c.req.json<{ history?: boolean; requested_by: string }>();
    return c.json(await backups.start({ requestedBy, ...(history === undefined ? {} : { history }) }), 202);
  });
  app.post('/backups/:name/proof', async (c) => {
    const { requested_by: requestedBy } = await c.req.json<{ requested_by: string }>();
    return c.json(await backups.prove(c.req.param('name'), { requestedBy }), 202);
  });
  app.put('/backups/:name/permanent', async (c) => {
    const { permanent } = await c.req.json<{ permanent: boolean }>();
    return c.json(await backups.setPermanent(c.req.param('name'), permanent));
  });
  app.get('/backups/:name/archive', async (c) => {
    const { body, bytes } = await backups.read(c.req.param('name'));
    return c.body(body, 200, { 'content-length': String(bytes), 'content-type': 'application/octet-stream' });
  });
  return app;
}
