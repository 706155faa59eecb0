// Keeps the record of the last upgrade in a file. upgrade.sh writes it, health reads it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, codeOf } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import { type UpgradeRecord, upgradeRecordSchema, type Upgrades } from './port.ts';

const FILE = 'upgrade.json';

/** `directory` is DATA_DIR. */
export function upgradeFile(directory: string): Upgrades {
  return { last: () => readUpgradeRecord(directory) };
}

export async function readUpgradeRecord(directory: string): Promise<UpgradeRecord | undefined> {
  const file = join(directory, FILE);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new AppError('internal', `Couldn't read ${file} (${codeOf(error)}).`);
  }
  try {
    return upgradeRecordSchema.parse(JSON.parse(text));
  } catch {
    throw new AppError('internal', `${file} is damaged. Remedy: delete it.`);
  }
}

export function writeUpgradeRecord(directory: string, record: UpgradeRecord): void {
  writeFileAtomically(join(directory, FILE), `${JSON.stringify(record, null, 2)}\n`);
}
