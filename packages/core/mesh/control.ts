// Tells every node what to read again after a change on one of them.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { z } from 'zod';
import type { Bus } from './bus.ts';
import { subjects } from './subjects.ts';

const revoked = z.object({
  serial: z.string(),
  revokedAt: z.coerce.date(),
  expiresAt: z.coerce.date(),
  subject: z.string(),
});
const changeSchema = z.discriminatedUnion('changed', [
  z.object({ changed: z.literal('revocations'), entries: z.array(revoked) }),
  z.object({ changed: z.literal('injectors') }),
  z.object({ changed: z.literal('groups'), usernames: z.array(z.string()), clientUid: z.string().optional() }),
]);
export type Change = z.infer<typeof changeSchema>;

export class Control {
  readonly #bus: Bus;
  readonly #pending = new Set<Promise<void>>();
  /** What the bus may not have taken. */
  readonly #untold = new Map<Change['changed'], Change>();

  /** `reread` is called for the changes of other nodes, `failed` when it rejects. */
  constructor(bus: Bus, reread: (change: Change) => Promise<void>, failed: () => void, log: Log) {
    this.#bus = bus;
    bus.subscribe(subjects.control, (message) => {
      try {
        const change = changeSchema.parse(JSON.parse(message.toString('utf8')));
        const pending = reread(change)
          .catch(failed)
          .finally(() => this.#pending.delete(pending));
        this.#pending.add(pending);
      } catch (error) {
        log.error('mesh.message_unreadable', { error: messageOf(error), bytes: message.length });
        failed();
      }
    });
    bus.onChange((isUp) => {
      if (isUp) for (const change of this.#untold.values()) this.#say(change);
    });
  }

  /** Resolves when what was told before this call has been read. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** Also after a cut: told again until the bus has taken it. */
  tell(change: Change): void {
    const all = joined(this.#untold.get(change.changed), change);
    this.#untold.set(change.changed, all);
    this.#say(all);
  }

  #say(change: Change): void {
    this.#bus.publish(subjects.control, Buffer.from(JSON.stringify(change)));
    const taken = (): void => {
      if (this.#untold.get(change.changed) === change) this.#untold.delete(change.changed);
    };
    this.#bus.fence().then(taken, () => undefined);
  }
}

function joined(before: Change | undefined, change: Change): Change {
  if (before?.changed === 'revocations' && change.changed === 'revocations')
    return { changed: 'revocations', entries: [...before.entries, ...change.entries] };
  if (before?.changed !== 'groups' || change.changed !== 'groups') return change;
  const usernames = [...new Set([...before.usernames, ...change.usernames])];
  const { clientUid } = change;
  return { changed: 'groups', usernames, ...(clientUid === undefined ? {} : { clientUid }) };
}
