// The closed set of failures that people and programs see; shared/http/problem.ts maps each to a
// status.

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

/**
 * One invalid member of a request: `path` is dotted (`policy.cot`), `message` says what is
 * expected.
 */
export interface FieldError {
  path: string;
  message: string;
}

export interface AppErrorOptions {
  cause?: unknown;
  fields?: FieldError[];
  /** Seconds until the caller may try again (locked_out). */
  retryAfterSeconds?: number;
  /**
   * What a program needs to decide on it (confirmation_needed, not_enough_disk), or the job that is
   * in the way (conflict).
   */
  figures?: Record<string, unknown>;
}

/**
 * A failure with a message that the caller may read. Everything else that is thrown answers 500
 * without its text.
 */
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

/** An error about one member of the input. */
export function invalid(path: string, fault: string): AppError {
  return new AppError('invalid', `${path}: ${fault}`, { fields: [{ path, message: fault }] });
}

/**
 * What was thrown may be anything: its message and its code, whatever it is.
 * The message of an error, or the thing itself as text.
 */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/**
 * Why, as short as it can be said: the code or the message of what lies at the bottom of an error.
 */
export function causeOf(thrown: unknown): string {
  const { cause } = thrown instanceof Error ? thrown : { cause: undefined };
  return cause === undefined ? (codeOf(thrown) ?? messageOf(thrown)) : causeOf(cause);
}

/** The system's or the database's code (`ENOENT`, `28P01`), if it has one. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null || !('code' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}

/** A reason why the stack cannot start or go on, with what a person can do about it. */
export class StackError extends Error {
  readonly remedy: string;

  constructor(message: string, remedy: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StackError';
    this.remedy = remedy;
  }
}

/** Turns a failure of the file system at `path` into words; any other error comes back as it is. */
export function explainFileError(error: unknown, path: string): unknown {
  switch (codeOf(error) ?? '') {
    case 'ENOSPC':
    case 'EDQUOT':
      return new StackError(
        `The disk of ${path} is full.`,
        'free some space, or choose another place with --data DIR',
        error,
      );
    case 'EACCES':
    case 'EPERM':
      return new StackError(
        `${path} cannot be read or written by this user.`,
        'start as the user that owns it, or choose another place with --data DIR',
        error,
      );
    case 'EROFS':
      return new StackError(`${path} is on a read-only file system.`, 'choose another place with --data DIR', error);
    case 'EISDIR':
      return new StackError(
        `${path} is a directory where a file is expected.`,
        'move it away, then start again',
        error,
      );
    case 'ENOENT':
    case 'ELOOP':
      return new StackError(
        `${path} cannot be made or opened: a link on the way leads nowhere, or nothing can be made there.`,
        'remove the link, or choose another place with --data DIR',
        error,
      );
    case 'EMFILE':
    case 'ENFILE':
      return new StackError('Too few files may be open at once.', 'raise the limit with: ulimit -n 1024', error);
    case 'ENOTDIR':
    case 'EEXIST':
      return new StackError(
        `${path} cannot be used: a part of this path is a file, not a directory.`,
        'choose another place with --data DIR',
        error,
      );
    default:
      return error;
  }
}
