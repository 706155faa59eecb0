// The closed set of failures that people and programs see; shared/http/problem.ts maps each to a status.

export const ERROR_CODES = [
  'malformed',
  'unauthenticated',
  'forbidden',
  'not_found',
  'conflict',
  'confirmation_needed',
  'not_enough_disk',
  'not_supported',
  'too_large',
  'media_type',
  'invalid',
  'locked_out',
  'upstream',
  'unavailable',
  'internal',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** One invalid member of a request: `path` is dotted (`policy.cot`), `message` says what is expected. */
export interface FieldError {
  path: string;
  message: string;
}

export interface AppErrorOptions {
  cause?: unknown;
  fields?: FieldError[];
  /** Seconds until the caller may try again (locked_out). */
  retryAfterSeconds?: number;
  /** What a program needs to decide on it (confirmation_needed, not_enough_disk), or the job that is in the way (conflict). */
  figures?: Record<string, unknown>;
}

/** A failure with a message that the caller may read. Everything else that is thrown answers 500 without its text. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly fields: FieldError[];
  readonly retryAfterSeconds: number | undefined;
  readonly figures: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.fields = options.fields ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.figures = options.figures;
  }
}
