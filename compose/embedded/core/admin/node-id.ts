// The name of this server in every wrapped answer: made once, kept for good.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../../../../shared/domain/thrown.ts';
import { writeFileAtomically } from '../../atomic-file.ts';
import { explainFileError, StackError } from '../../stack-error.ts';

const FORM = /^[0-9a-f]{32}$/;

/** 32 hex digits from `{data_dir}/node-id`, which is made when it is missing. Throws a StackError that names the file. */
export function readNodeId(dataDir: string): string {
  const path = join(dataDir, 'node-id');
  const kept = readIfThere(path)?.trim();
  if (kept === undefined) {
    const made = randomBytes(16).toString('hex');
    writeFileAtomically(path, `${made}\n`);
    return made;
  }
  if (FORM.test(kept)) return kept;
  throw new StackError(
    `${path} does not hold 32 hex digits.`,
    'put the old number back; without one, delete the file, and devices take this for a new server',
  );
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw explainFileError(error, path);
  }
}
