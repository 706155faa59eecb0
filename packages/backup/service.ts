// The backup service: one run at a time, its progress, what is kept, and its HTTP API.

import { Hono } from 'hono';
import { z } from 'zod';
import { AppError, type ErrorCode, messageOf, StackError } from '@holdfast/kit/app-error';
import { serialize } from '@holdfast/kit/concurrency';
import type { Log } from '@holdfast/kit/log';
import { constantTimeEqual, type Secret } from '@holdfast/kit/secret';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '@holdfast/kit/time';
import { withFallback } from '@holdfast/kit/timeout';
import type { Backup, BackupRun, BackupState, Proof } from '../../shared/backups/port.ts';
import { isProven } from '../../shared/backups/rules.ts';
import { expiredBackups, type KeepRules } from './keep.ts';
import type { BackupTarget } from './target.ts';

export type RunProgress = Partial<Omit<BackupRun, 'kind' | 'started_at'>>;

export interface RunContext {
  report: (progress: RunProgress) => void;
  signal: AbortSignal;
}

export interface WorkerDeps {
  target: BackupTarget;
  encryption: 'passphrase' | 'recipient';
  proof: BackupState['proof'];
  /** Used unless a request says otherwise. */
  history: boolean;
  keep: KeepRules;
  /** Writes an archive and its sidecar to the target. */
  take: (request: { history: boolean; requestedBy: string }, context: RunContext) => Promise<Backup>;
  /** Rejects if the proof could not be done; an archive that fails it is an answer. */
  prove: (backup: Backup, context: RunContext) => Promise<Proof>;
  now: () => Date;
  log: Log;
}

type Failure = NonNullable<BackupState['last_failure']>;
type Kind = BackupRun['kind'];
type TargetState = Pick<NonNullable<BackupState['target']>, 'free_bytes' | 'error'> & { backups: Backup[] };

/** The caller waits for 10 seconds. */
const STATE_WITHIN_MS = 5_000;
const CHECK_EVERY_MS = 5 * MINUTE_MS;
/** A weekly proof follows the first backup after six days and some hours: schedules vary. */
const WEEKLY_AFTER_MS = 7 * DAY_MS - 6 * HOUR_MS;

export class BackupWorker {
  readonly #deps: WorkerDeps;
  readonly #stop = new AbortController();
  /** Sidecars are read, changed and written in turn. */
  readonly #inTurn = serialize();
  readonly #failures = new Map<Kind, Failure>();
  #running: BackupRun | undefined;
  #ended: Promise<void> = Promise.resolve();
  #known: TargetState = { free_bytes: null, error: null, backups: [] };
  #looking: Promise<TargetState> | undefined;
  #checkedAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
  }

  async state(): Promise<BackupState> {
    const { target, encryption, proof } = this.#deps;
    // Before the look: a run that ends meanwhile may have changed what the look has already read.
    const running = this.#running ?? null;
    const late = { ...this.#known, error: `${target.place} did not answer within ${STATE_WITHIN_MS / 1000} s.` };
    const { backups, ...facts } = await withFallback(STATE_WITHIN_MS, late, this.#look());
    const failures = [...this.#failures.values()].toSorted((one, other) => other.at.localeCompare(one.at));
    return {
      target: { kind: target.kind, place: target.place, ...facts },
      encryption,
      proof,
      running,
      last_failure: failures[0] ?? null,
      backups,
    };
  }

  /** Starts a backup, and the proof that is due after it. */
  start({ history, requestedBy }: { history?: boolean | undefined; requestedBy: string }): BackupRun {
    return this.#begin('backup', null, async () => {
      const backup = await this.#makeBackup({ history: history ?? this.#deps.history, requestedBy });
      await this.#proveIfDue(backup);
      await this.#deleteExpired();
    });
  }

  async prove(name: string): Promise<BackupRun> {
    this.#refuseWhileRunning();
    const backup = await this.#find(name);
    return this.#begin('proof', name, async () => this.#prove(backup));
  }

  async setPermanent(name: string, permanent: boolean): Promise<Backup> {
    return this.#change(name, { permanent });
  }

  async read(name: string): ReturnType<BackupTarget['read']> {
    await this.#find(name);
    return this.#deps.target.read(name);
  }

  /** Deletes what killed backups left. Never rejects. */
  async clean(): Promise<void> {
    const { target, log } = this.#deps;
    await target.clean().then(
      (names) => {
        if (names.length > 0) log.info('backup.cleaned', { names });
      },
      (error: unknown) => log.warn('backup.clean_failed', { error: messageOf(error) }),
    );
  }

  /** Interrupts what runs, which removes what it has written. */
  async stop(): Promise<void> {
    this.#stop.abort(new StackError('The backup service was stopped.', 'start the stack, then run it again'));
    await this.#ended;
  }

  #refuseWhileRunning(): void {
    if (this.#running === undefined) return;
    const { kind, started_at } = this.#running;
    throw new AppError('conflict', `A ${kind} has been running since ${started_at}. Wait until it has ended.`);
  }

  #begin(kind: Kind, name: string | null, work: () => Promise<void>): BackupRun {
    this.#refuseWhileRunning();
    const run = this.#enter(kind, name);
    this.#ended = work()
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
        // The next caller must not share a look that began before the end.
        this.#looking = undefined;
      });
    return run;
  }

  #enter(kind: Kind, name: string | null): BackupRun {
    this.#running = {
      kind,
      name,
      started_at: this.#deps.now().toISOString(),
      phase: 'Preparing',
      percent: null,
      bytes_per_second: null,
      seconds_left: null,
    };
    return { ...this.#running };
  }

  get #context(): RunContext {
    return {
      signal: this.#stop.signal,
      report: (progress) => {
        if (this.#running !== undefined) Object.assign(this.#running, progress);
      },
    };
  }

  async #makeBackup(request: { history: boolean; requestedBy: string }): Promise<Backup> {
    return this.#attempt('backup', async () => {
      await this.clean();
      return this.#deps.take(request, this.#context);
    });
  }

  async #proveIfDue(backup: Backup): Promise<void> {
    if (!(await this.#isProofDue())) return;
    this.#enter('proof', backup.name);
    // Rule: a backup counts without its proof; the failure is kept and shown.
    await this.#prove(backup).catch(() => undefined);
  }

  async #isProofDue(): Promise<boolean> {
    const { proof, now, target } = this.#deps;
    if (proof !== 'weekly') return proof === 'always';
    const backups = await target.list();
    const lastMs = Math.max(...backups.filter(isProven).map((each) => Date.parse(each.proof?.at ?? '')));
    // Also after the clock was set back.
    return Math.abs(now().getTime() - lastMs) >= WEEKLY_AFTER_MS;
  }

  async #prove(backup: Backup): Promise<void> {
    await this.#attempt('proof', async () => {
      const proof = await this.#deps.prove(backup, this.#context);
      await this.#change(backup.name, { proof });
      if (!isProven({ proof })) throw new StackError(proof.error ?? 'The proof failed.', 'see the checks of its proof');
      return backup;
    });
  }

  /** Logs the outcome and keeps a failure until one of its kind succeeds. */
  async #attempt(kind: Kind, work: () => Promise<Backup>): Promise<Backup> {
    const { log, now } = this.#deps;
    const begun = performance.now();
    const run = this.#running;
    log.info(`backup.${kind}_started`, run?.name === null ? {} : { name: run?.name });
    try {
      const { name, bytes, rows } = await work();
      this.#failures.delete(kind);
      log.info(`backup.${kind}_ended`, { name, bytes, rows, seconds: secondsSince(begun) });
      return await this.#find(name);
    } catch (error) {
      const words = failureWords(error);
      this.#failures.set(kind, { kind, at: now().toISOString(), name: this.#running?.name ?? null, error: words });
      log.error(`backup.${kind}_failed`, { name: this.#running?.name, error: words, seconds: secondsSince(begun) });
      throw error;
    }
  }

  async #deleteExpired(): Promise<void> {
    const { target, keep, now, log } = this.#deps;
    try {
      for (const name of expiredBackups(await target.list(), keep, now())) {
        await target.remove(name);
        log.info('backup.deleted', { name });
      }
    } catch (error) {
      // Rule: the next backup tries again; the new one counts.
      log.warn('backup.delete_failed', { error: messageOf(error) });
    }
  }

  async #change(name: string, change: Partial<Pick<Backup, 'permanent' | 'proof'>>): Promise<Backup> {
    return this.#inTurn(async () => {
      const changed = { ...(await this.#find(name)), ...change };
      await this.#deps.target.putSidecar(changed);
      return changed;
    });
  }

  async #find(name: string): Promise<Backup> {
    const found = (await this.#deps.target.list()).find((backup) => backup.name === name);
    if (found === undefined) throw new AppError('not_found', `There is no backup ${name.slice(0, 200)}.`);
    return found;
  }

  /** One look at a time, however many ask. Never rejects. */
  async #look(): Promise<TargetState> {
    this.#looking ??= this.#lookNow().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #lookNow(): Promise<TargetState> {
    const { target } = this.#deps;
    try {
      const backups = await target.list();
      this.#known = { ...this.#known, backups };
      const freeBytes = await target.freeBytes();
      if (this.#known.error !== null || performance.now() - this.#checkedAtMs >= CHECK_EVERY_MS) {
        await target.check();
        this.#checkedAtMs = performance.now();
      }
      this.#known = { free_bytes: freeBytes, error: null, backups };
    } catch (error) {
      this.#known = { ...this.#known, error: failureWords(error) };
    }
    return this.#known;
  }
}

function failureWords(error: unknown): string {
  return error instanceof StackError ? `${error.message} Remedy: ${error.remedy}.` : messageOf(error);
}

function secondsSince(begunMs: number): number {
  return Math.round((performance.now() - begunMs) / 100) / 10;
}

const STATUS: Partial<Record<ErrorCode, 400 | 401 | 404 | 409 | 503>> = {
  unauthenticated: 401,
  malformed: 400,
  not_found: 404,
  conflict: 409,
  unavailable: 503,
};

const requestSchema = z.object({ history: z.boolean().optional(), requested_by: z.string().min(1).max(200) });
const permanentSchema = z.object({ permanent: z.boolean() });

/** The API. `token`: every request but a ping needs it. */
export function backupApi(worker: BackupWorker, token: Secret, log: Log): Hono {
  const app = new Hono();
  app.get('/ping', (c) => c.text('pong'));
  app.use(async ({ req }, next) => {
    const given = /^Bearer (\S+)$/.exec(req.header('authorization') ?? '')?.[1] ?? '';
    if (!(await constantTimeEqual(given, token.reveal())))
      throw new AppError('unauthenticated', 'This needs the token BACKUP_TOKEN.');
    await next();
  });
  app.get('/state', async (c) => c.json(await worker.state()));
  app.post('/backups', async (c) => {
    const { history, requested_by: requestedBy } = await bodyOf(c.req.raw, requestSchema);
    return c.json(worker.start({ history, requestedBy }), 202);
  });
  app.post('/backups/:name/proof', async (c) => {
    await bodyOf(c.req.raw, requestSchema);
    return c.json(await worker.prove(c.req.param('name')), 202);
  });
  app.put('/backups/:name/permanent', async (c) => {
    const { permanent } = await bodyOf(c.req.raw, permanentSchema);
    return c.json(await worker.setPermanent(c.req.param('name'), permanent));
  });
  app.get('/backups/:name/archive', async (c) => {
    const { body, bytes } = await worker.read(c.req.param('name'));
    const { Readable } = await import('node:stream');
    const headers = { 'content-type': 'application/octet-stream', 'content-length': String(bytes) };
    return new Response(Readable.toWeb(body) as ReadableStream<Uint8Array>, { headers });
  });
  app.notFound((c) => c.json({ code: 'not_found', message: 'There is nothing at this address.' }, 404));
  app.onError((error, c) => {
    if (error instanceof AppError)
      return c.json({ code: error.code, message: error.message }, STATUS[error.code] ?? 500);
    log.error('backup.request_failed', { path: c.req.path, error: messageOf(error) });
    if (error instanceof StackError) return c.json({ code: 'unavailable', message: failureWords(error) }, 503);
    return c.json({ code: 'internal', message: 'An unexpected failure. See the log of the backup service.' }, 500);
  });
  return app;
}

async function bodyOf<T>(request: Request, schema: z.ZodType<T>): Promise<T> {
  const parsed = schema.safeParse(await request.json().catch(() => undefined));
  if (parsed.success) return parsed.data;
  throw new AppError('malformed', `The body is not valid: ${parsed.error.issues[0]?.message ?? 'no JSON'}.`);
}
