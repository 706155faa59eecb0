// A reason why the stack cannot start or go on, with what a person can do about it.

import { codeOf } from '../../shared/domain/thrown.ts';

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
