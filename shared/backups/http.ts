// Calls the backup service over HTTP. Runs on Node and in workerd.

import { z } from 'zod';
import { AppError, ERROR_CODES, type ErrorCode } from '@holdfast/kit/app-error';
import { readBodyText } from '@holdfast/kit/body';
import type { Secret } from '@holdfast/kit/secret';
import { failureWords, oneLine, shortened } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import {
  type Backup,
  type BackupRun,
  backupRunSchema,
  type Backups,
  backupSchema,
  type BackupState,
  backupStateSchema,
} from './port.ts';
import { isArchiveName } from './rules.ts';

export interface BackupServiceOptions {
  /** BACKUP_URL. */
  url: string;
  /** BACKUP_TOKEN. */
  token: Secret;
  /** The platform's. */
  fetch: typeof globalThis.fetch;
  /** For every answer; for an archive, until it begins. Default: 6 s for the state, else 30 s. */
  withinMs?: number;
}

/** Pages wait no longer for a part. */
const STATE_WITHIN_MS = 6_000;
/** A target far away is read and written for it. */
const WITHIN_MS = 30_000;
/** Of a list: some thousand backups with the checks of their proofs. */
const MAX_BYTES = 32 * 1024 * 1024;
const STATE = '/state';
const MAX_WORDS = 1000;
/** What a caller can act on. Any other code is about us and the service. */
const PASSED_ON: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'not_found',
  'conflict',
  'invalid',
  'not_supported',
  'not_enough_disk',
  'unavailable',
]);
const REMEDY =
  'Remedy: check that the stack runs the backup service, and read its log (docker compose logs backup, or DIR/logs/backup.log).';

const errorSchema = z.object({ code: z.enum(ERROR_CODES), message: z.string() });

export class HttpBackups implements Backups {
  readonly #base: string;
  readonly #options: BackupServiceOptions;

  constructor(options: BackupServiceOptions) {
    this.#base = options.url.replace(/\/+$/, '');
    this.#options = options;
  }

  state(): Promise<BackupState> {
    return this.#json('GET', STATE, backupStateSchema);
  }

  start({ history, requestedBy }: { history?: boolean; requestedBy: string }): Promise<BackupRun> {
    const body = { requested_by: requestedBy, ...(history === undefined ? {} : { history }) };
    return this.#json('POST', '/backups', backupRunSchema, body);
  }

  async prove(name: string, { requestedBy }: { requestedBy: string }): Promise<BackupRun> {
    return this.#json('POST', `${pathOf(name)}/proof`, backupRunSchema, { requested_by: requestedBy });
  }

  async setPermanent(name: string, permanent: boolean): Promise<Backup> {
    return this.#json('PUT', `${pathOf(name)}/permanent`, backupSchema, { permanent });
  }

  async read(name: string): Promise<{ body: ReadableStream<Uint8Array>; bytes: number }> {
    const response = await this.#ask('GET', `${pathOf(name)}/archive`);
    const bytes = Number(response.headers.get('content-length') ?? Number.NaN);
    if (response.body !== null && Number.isSafeInteger(bytes)) return { body: response.body, bytes };
    await response.body?.cancel();
    throw new AppError('upstream', `The backup service answered ${name} without its size.`);
  }

  async #json<T>(method: string, path: string, schema: z.ZodType<T>, body?: object): Promise<T> {
    const response = await this.#ask(method, path, body);
    const text = await this.#within(path, readBodyText(response.body, MAX_BYTES, tooLong));
    const read = schema.safeParse(jsonOf(text));
    if (read.success) return read.data;
    const [issue] = read.error.issues;
    const where = issue === undefined ? '' : ` (${issue.path.join('.')}: ${issue.message})`;
    throw new AppError('upstream', `The backup service answered ${method} ${path} with data of another kind${where}.`);
  }

  /** The answer, once it has begun; rejects unless it is a success. */
  async #ask(method: string, path: string, body?: object): Promise<Response> {
    const { token, fetch } = this.#options;
    const stop = new AbortController();
    const init: RequestInit = {
      method,
      redirect: 'manual',
      signal: stop.signal,
      headers: {
        authorization: `Bearer ${token.reveal()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    let response: Response;
    try {
      response = await this.#within(path, fetch(`${this.#base}${path}`, init));
    } catch (error) {
      stop.abort();
      throw error;
    }
    if (response.ok) return response;
    throw await this.#refusal(path, response);
  }

  async #within<T>(path: string, work: Promise<T>): Promise<T> {
    const { withinMs = path === STATE ? STATE_WITHIN_MS : WITHIN_MS } = this.#options;
    const { token } = this.#options;
    const late = (): AppError => this.#unavailable(`did not answer within ${withinMs / 1000} s`);
    try {
      return await withTimeout(withinMs, late, work);
    } catch (error) {
      if (error instanceof AppError) throw error;
      // Without the cause: a platform's fetch may include the token in its message.
      throw this.#unavailable(failureWords(error, [token.reveal()]));
    }
  }

  #unavailable(how: string): AppError {
    return new AppError('unavailable', `The backup service at ${new URL(this.#base).host} ${how}. ${REMEDY}`);
  }

  async #refusal(path: string, response: Response): Promise<AppError> {
    const { status } = response;
    const text = await this.#within(path, readBodyText(response.body, MAX_BYTES, tooLong));
    if (status === 401 || status === 403)
      return new AppError('upstream', `The backup service rejected BACKUP_TOKEN. Remedy: give both the same one.`);
    const { code, message } = errorSchema.safeParse(jsonOf(text)).data ?? { code: 'upstream', message: '' };
    const words = shortened(oneLine(message.replaceAll(this.#options.token.reveal(), '***')), MAX_WORDS);
    if (words !== '' && PASSED_ON.has(code)) return new AppError(code, words);
    return new AppError('upstream', `The backup service answered ${status}${words === '' ? '.' : `: ${words}`}`);
  }
}

/** A name is part of an address, and dots would lead elsewhere. */
function pathOf(name: string): string {
  if (!isArchiveName(name)) throw noBackup(name);
  return `/backups/${encodeURIComponent(name)}`;
}

export function noBackup(name: string): AppError {
  return new AppError('not_found', `There is no backup '${name.slice(0, 200)}'. GET /api/backups lists them.`);
}

function tooLong(): AppError {
  return new AppError('upstream', `The backup service answered with more than ${MAX_BYTES} bytes.`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
