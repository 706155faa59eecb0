// The groups of everybody on the stream taken anew: each at its own time once in an interval, and at once when somebody has
// switched them. Who hears others by it, or is heard, gets the newest reports.

import { nameKey } from '../../../../shared/domain/names.ts';
import { oneAfterTheOther } from '../one-after-the-other.ts';
import { messageOf } from '../../../../shared/domain/thrown.ts';
import { groupsChanged } from './control-events.ts';
import type { Audiences } from './audiences.ts';
import { type Client, placesOf } from './client.ts';
import type { Memberships } from './memberships.ts';
import type { Outboxes, Outgoing } from './outboxes.ts';
import type { PlacedMembership, ServerEvent } from './parts.ts';
import type { ClientPresence } from './presence.ts';
import type { Roster } from './roster.ts';

export interface Regrouping {
  /** Resolves when they count. The device of that uid knows already. */
  regroup(usernames: readonly string[], clientUid: string | undefined): Promise<void>;
  /** Those whose time has come; to be called often. */
  look(): void;
}

export interface RegroupingOptions {
  memberships: Memberships;
  roster: Roster;
  audiences: Audiences<Client>;
  presence: ClientPresence;
  outboxes: Outboxes;
  serverEvent: (event: ServerEvent) => Outgoing;
  everyMs: number;
  steadyMs: () => number;
}

/** Of those whose time has come. */
const MOST_AT_ONCE = 16;
export const CLOSED = 'the account is not active';

export function createRegrouping(options: RegroupingOptions): Regrouping {
  const { memberships, roster, audiences, presence, outboxes, serverEvent, everyMs, steadyMs } = options;
  const dueAt = new WeakMap<Client, number>();
  /** An answer that comes after that of a later question counts no more. */
  const asked = new WeakMap<Client, number>();
  let running = 0;
  /** One in each turn of the event loop: a change costs as much as there are clients. */
  const inTurn = oneAfterTheOther();

  async function take(client: Client, knowsAlready: boolean, answer: ReturnType<Memberships['of']>): Promise<void> {
    const question = (asked.get(client) ?? 0) + 1;
    asked.set(client, question);
    const found = await answer;
    const isOld = (): boolean => asked.get(client) !== question || !roster.all.has(client);
    if (isOld()) return;
    if (found === 'closed') client.end(CLOSED);
    else if (found !== 'unknown' && isDifferent(found, client.memberships))
      await inTurn(async () => {
        if (isOld()) return;
        change(client, found, knowsAlready);
        await new Promise((resolve) => setImmediate(resolve));
      });
  }

  function change(client: Client, found: readonly PlacedMembership[], knowsAlready: boolean): void {
    const heardBefore = new Set([...roster.all].filter((other) => other.audience.has(client)));
    const before = client.audience;
    const hearersBefore = new Set(before.members);
    client.memberships = found;
    client.audience = audiences.hold(placesOf(found, 'IN'));
    audiences.place(client, placesOf(found, 'OUT'));
    audiences.release(before);

    if (!knowsAlready) outboxes.send(serverEvent(groupsChanged()), [client]);
    presence.replayTo(
      client,
      [...roster.all].filter((other) => !heardBefore.has(other)),
    );
    const latest = client.shown?.latest;
    if (latest?.isKept !== true) return;
    const hearers = client.audience.members.filter((other) => !hearersBefore.has(other));
    outboxes.send(latest, hearers, client);
  }

  async function takeInTurn(client: Client): Promise<void> {
    running++;
    try {
      await take(client, false, memberships.of(client.certificate));
    } catch (error) {
      client.end(`its groups could not be changed: ${messageOf(error)}`);
    } finally {
      running--;
    }
  }

  return {
    async regroup(usernames, clientUid) {
      const clients = new Set(usernames.flatMap((username) => roster.ofUser(username)));
      const answers = new Map<string, ReturnType<Memberships['of']>>();
      /** All the devices of a person have the same answer. */
      const answerFor = ({ certificate, username }: Client): ReturnType<Memberships['of']> => {
        const key = `${certificate.channels} ${nameKey(username)}`;
        const answer = answers.get(key) ?? memberships.of(certificate);
        answers.set(key, answer);
        return answer;
      };
      await Promise.all(
        [...clients].map((client) =>
          take(client, clientUid !== undefined && client.shown?.uid === clientUid, answerFor(client)),
        ),
      );
    },

    look() {
      const atMs = steadyMs();
      for (const client of roster.all) {
        const at = dueAt.get(client);
        if (at === undefined) dueAt.set(client, atMs + everyMs * (0.5 + Math.random() / 2));
        else if (at <= atMs && running < MOST_AT_ONCE) {
          dueAt.set(client, atMs + everyMs);
          void takeInTurn(client);
        }
      }
    },
  };
}

function isDifferent(a: readonly PlacedMembership[], b: readonly PlacedMembership[]): boolean {
  return keyOf(a) !== keyOf(b);
}

function keyOf(memberships: readonly PlacedMembership[]): string {
  return memberships
    .map(({ place, direction, name }) => `${place} ${direction} ${name}`)
    .toSorted()
    .join('\n');
}
