// The groups of everybody on the stream taken anew: each at its own time once in an interval, and at once when somebody has
// switched them. Who hears others by it, or is heard, gets the newest reports.

import { messageOf } from '@holdfast/kit/app-error';
import { oneAfterTheOther } from '@holdfast/kit/limits';
import type { Log } from '@holdfast/kit/log';
import { nameKey } from '@holdfast/kit/names';
import type { ClientCertificate } from '../model/parts.ts';
import type { PlacedMembership, ServerEvent, StreamGroups } from '../model/stream.ts';
import { type Audiences, type Client, placesOf } from './client.ts';
import { groupsChanged } from './control-events.ts';
import type { Outboxes, Outgoing } from './outboxes.ts';
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

// The groups of whoever is on the stream or wants to be, remembered for the time when the directory does not answer.

export interface Memberships {
  /** `closed`: the account is not active. `unknown`: nobody can say now, and these were never learned. Never rejects. */
  of(certificate: ClientCertificate): Promise<readonly PlacedMembership[] | 'closed' | 'unknown'>;
}

const MOST_REMEMBERED = 10_000;

/**
 * Rule `keepGroupsWhileDirectoryIsAway`: who was seen before keeps the groups of then, so that an outage takes nobody off
 * the stream. Who was never seen is not let in: the group of the anonymous is for those whom the directory does not know.
 */
export function createMemberships(groups: StreamGroups, log: Log): Memberships {
  const learned = new Map<string, readonly PlacedMembership[]>();
  let away = false;

  function learn(key: string, memberships: readonly PlacedMembership[]): void {
    learned.delete(key);
    learned.set(key, memberships);
    const [oldest] = learned.keys();
    if (learned.size > MOST_REMEMBERED && oldest !== undefined) learned.delete(oldest);
  }

  async function of(certificate: ClientCertificate): Promise<readonly PlacedMembership[] | 'closed' | 'unknown'> {
    const key = `${certificate.channels} ${nameKey(certificate.commonName)}`;
    try {
      const found = await groups.of(certificate);
      if (away) log.info('stream.groups_read_again');
      away = false;
      if (found === 'closed') learned.delete(key);
      else learn(key, found);
      return found;
    } catch (error) {
      if (!away)
        log.warn('stream.groups_unreadable', { error: messageOf(error), consequence: 'groups stay as they were' });
      away = true;
      return learned.get(key) ?? 'unknown';
    }
  }

  return { of };
}
