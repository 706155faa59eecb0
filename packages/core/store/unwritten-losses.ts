// Losses that the database had not taken when the core was stopped: in a file, until a later start has written them.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import type { Log } from '@holdfast/kit/log';
import type { Loss } from './tables.ts';

/** The id is there when the row may be in the table already. */
export type UnwrittenLoss = Omit<Loss, 'id'> & { id?: number | undefined };

export interface UnwrittenLosses {
  read(): UnwrittenLoss[];
  /** In place of those of before; none: the file goes. */
  keep(losses: readonly UnwrittenLoss[]): void;
}

const Kept = z.array(
  z.object({
    id: z.int().optional(),
    began: z.coerce.date(),
    ended: z.coerce.date(),
    events: z.int().positive(),
    reason: z.string(),
  }),
);

/** Rule `lossesLater`: neither a broken file nor a full disk keeps the core from starting or stopping; the log says so. */
export function unwrittenLosses(dataDirectory: string, log: Log): UnwrittenLosses {
  const path = join(dataDirectory, 'unwritten-losses.json');
  return {
    read() {
      try {
        return Kept.parse(JSON.parse(readFileSync(path, 'utf8')));
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') log.warn('archive.losses_unreadable', { path, error: messageOf(error) });
        return [];
      }
    },
    keep(losses) {
      try {
        if (losses.length === 0) rmSync(path, { force: true });
        else writeFileAtomically(path, JSON.stringify(losses));
      } catch (error) {
        log.warn('archive.losses_not_kept', { path, error: messageOf(error) });
      }
    },
  };
}
