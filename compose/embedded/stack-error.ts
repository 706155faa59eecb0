// A reason why the stack cannot start or go on, with what a person can do about it.

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
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
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
        `${path} cannot be written by this user.`,
        'start as the user that owns it, or choose another place with --data DIR',
        error,
      );
    case 'EROFS':
      return new StackError(`${path} is on a read-only file system.`, 'choose another place with --data DIR', error);
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
