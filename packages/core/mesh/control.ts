// Tells every node what to read again after a change on one of them, and what has to be known
// everywhere.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { z } from 'zod';
import { PERIOD_MS } from '../stream/repeater.ts';
import { countedSchema } from './lockouts.ts';

const revoked = z.object({
  serial: z.string(),
  revokedAt: z.coerce.date(),
  expiresAt: z.coerce.date(),
  subject: z.string(),
});
const changeSchema = z.discriminatedUnion('changed', [
  z.object({ changed: z.literal('revocations'), entries: z.array(revoked) }),
  z.object({ changed: z.literal('injectors') }),
  z.object({ changed: z.literal('retention'), file: z.enum(['policy', 'schedule', 'archive']) }),
  z.object({ changed: z.literal('groups'), usernames: z.array(z.string()), clientUid: z.string().optional() }),
  /** That node repeats the emergency of the user from then on, or it is over. Since 1970. */
  z.object({
    changed: z.literal('alarm'),
    uid: z.string(),
    username: z.string(),
    atMs: z.number(),
    isCancelled: z.boolean(),
    node: z.string(),
  }),
  /** How often emergencies are repeated. */
  z.object({ changed: z.literal('period'), ms: z.int().min(PERIOD_MS.least).max(PERIOD_MS.most) }),
  /** A wrong password from that address. */
  z.object({ changed: z.literal('lockout'), address: z.string() }),
  /** What a node has counted of them, for one that may have missed some. */
  z.object({ changed: z.literal('lockouts'), counted: z.array(countedSchema) }),
]);
export type Change = z.infer<typeof changeSchema>;

export interface ControlOptions {
  /** To the others, also to those that are cut off now. */
  tell: (message: Buffer) => void;
  /** To those that are there now, or to that one alone. */
  mention: (message: Buffer, node?: string) => void;
  /** Called for the changes of other nodes. */
  reread: (change: Change) => Promise<void>;
  /** `reread` has rejected. */
  failed: () => void;
  log: Log;
}

export class Control {
  readonly #options: ControlOptions;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: ControlOptions) {
    this.#options = options;
  }

  /** Resolves when what was told before this call has been read. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  tell(change: Change): void {
    const { tell, mention } = this.#options;
    // A password that was wrong minutes ago must not count as of now.
    (change.changed === 'lockout' ? mention : tell)(Buffer.from(JSON.stringify(change)));
  }

  /** To that node alone, which is there now. */
  tellOne(node: string, change: Change): void {
    this.#options.mention(Buffer.from(JSON.stringify(change)), node);
  }

  /** From another node. Twice does no harm. */
  take(message: Buffer): void {
    const { reread, failed, log } = this.#options;
    try {
      const change = changeSchema.parse(JSON.parse(message.toString('utf8')));
      const pending = reread(change)
        .catch((error: unknown) => {
          log.error('mesh.change_not_followed', { changed: change.changed, error: messageOf(error) });
          failed();
        })
        .finally(() => this.#pending.delete(pending));
      this.#pending.add(pending);
    } catch (error) {
      log.error('mesh.message_unreadable', { error: messageOf(error), bytes: message.length });
      failed();
    }
  }
}
