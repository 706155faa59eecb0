// The name of this server in every wrapped answer.

import { join } from 'node:path';
import { readOrMakeRandom } from '@holdfast/kit/files';

/** 32 hex digits from `{data_dir}/node-id`, which is made when it is missing. Throws a StackError that names the file. */
export function readNodeId(dataDir: string): string {
  return readOrMakeRandom({
    path: join(dataDir, 'node-id'),
    bytes: 16,
    remedy: 'put the old number back; without one, delete the file, and devices take this for a new server',
  });
}
