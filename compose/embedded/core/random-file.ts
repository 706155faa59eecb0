// A file of random hex digits: made once, kept for good.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { codeOf } from '../../../shared/domain/thrown.ts';
import { writeFileAtomically } from '../atomic-file.ts';
import { explainFileError, StackError } from '../stack-error.ts';

export interface RandomFile {
  path: string;
  bytes: number;
  /** What to do when it holds something else. */
  remedy: string;
}

/** The hex digits, lower case; the file is made when it is missing, for its owner alone. Throws a StackError that names it. */
export function readOrMakeRandom({ path, bytes, remedy }: RandomFile): string {
  const kept = readIfThere(path)?.trim();
  if (kept === undefined) {
    const made = randomBytes(bytes).toString('hex');
    writeFileAtomically(path, `${made}\n`);
    return made;
  }
  if (kept.length === 2 * bytes && /^[0-9a-f]+$/.test(kept)) return kept;
  throw new StackError(`${path} does not hold ${2 * bytes} hex digits.`, remedy);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw explainFileError(error, path);
  }
}
