// Reloads the groups of connected clients: each once per interval, and at once when someone
// switches them. Clients that newly receive each other get the newest reports.

import { messageOf } from '@holdfast/kit/app-error';
import { mapConcurrent, serialize } from '@holdfast/kit/concurrency';
import type { Log } from '@holdfast/kit/log';
import { nameKey } from '@holdfast/kit/names';
import type { ClientCertificate } from '../model/parts.ts';
import type { PlacedMembership, ServerEvent, StreamGroups } from '../model/stream.ts';
import { type Audiences, type Client, placesOf } from './client.ts';
import type { OtherNodes } from './other-nodes.ts';
import type { Outboxes, Outgoing } from './outboxes.ts';
import type { ClientPresence, Roster } from './presence.ts';
import { groupsChanged } from './server-events.ts';

export interface RegroupingOptions {
  memberships: Memberships;
  roster: Roster;
  audiences: Audiences<Client>;
  presence: ClientPresence;
  outboxes: Outboxes;
  serverEvent: (event: ServerEvent) => Outgoing;
  /** Undefined while there is one node. */
  others: OtherNodes | undefined;
  everyMs: number;
  now: () => Date;
  steadyMs: () => number;
}

const MAX_CONCURRENT = 16;
export const CLOSED = 'the account is not active';

export class Regrouping {
  readonly #options: RegroupingOptions;
  readonly #dueAt = new WeakMap<Client, number>();
  /** An answer that comes after that of a later question counts no more. */
  readonly #requested = new WeakMap<Client, number>();
  #running = 0;
  /** One in each turn of the event loop: a change costs as much as there are clients. */
  readonly #inTurn = serialize();

  constructor(options: RegroupingOptions) {
    this.#options = options;
  }

  /**
   * Resolves when they count, with those whose groups cannot be read. The device of that uid knows
   * already.
   */
  async regroup(usernames: readonly string[], clientUid: string | undefined): Promise<string[]> {
    this.#options.memberships.forget(usernames);
    const clients = new Set(usernames.flatMap((username) => this.#options.roster.ofUser(username)));
    const answers = new Map<string, ReturnType<Memberships['of']>>();
    /** All the devices of a person have the same answer. */
    const answerFor = ({ certificate, username }: Client): ReturnType<Memberships['of']> => {
      const key = `${certificate.channels} ${nameKey(username)}`;
      const answer = answers.get(key) ?? this.#options.memberships.of(certificate);
      answers.set(key, answer);
      return answer;
    };
    const unread = await mapConcurrent([...clients], MAX_CONCURRENT, async (client) => {
      const answer = answerFor(client);
      await this.#take(client, clientUid !== undefined && client.shown?.uid === clientUid, answer);
      return (await answer) === 'unknown' ? [client.username] : [];
    });
    return [...new Set(unread.flat())];
  }

  /** Those whose time has come; to be called often. */
  look(): void {
    const atMs = this.#options.steadyMs();
    for (const client of this.#options.roster.all) {
      const at = this.#dueAt.get(client);
      if (at === undefined) this.#dueAt.set(client, atMs + this.#options.everyMs * (0.5 + Math.random() / 2));
      else if (at <= atMs && this.#running < MAX_CONCURRENT) {
        this.#dueAt.set(client, atMs + this.#options.everyMs);
        void this.#takeInTurn(client);
      }
    }
  }

  async #take(client: Client, knowsAlready: boolean, answer: ReturnType<Memberships['of']>): Promise<void> {
    const question = (this.#requested.get(client) ?? 0) + 1;
    this.#requested.set(client, question);
    const found = await answer;
    const isOld = (): boolean => this.#requested.get(client) !== question || !this.#options.roster.all.has(client);
    if (isOld()) return;
    if (found === 'closed') client.end(CLOSED);
    else if (found !== 'unknown' && isDifferent(found, client.memberships))
      await this.#inTurn(async () => {
        if (isOld()) return;
        this.#changeOrEnd(client, found, knowsAlready);
        await new Promise((resolve) => setImmediate(resolve));
      });
  }

  /** Rule `changeOrEnd`: one client whose groups can't be changed leaves the others as they are. */
  #changeOrEnd(...given: [client: Client, found: readonly PlacedMembership[], knowsAlready: boolean]): void {
    try {
      this.#change(...given);
    } catch (error) {
      given[0].end(`its groups could not be changed: ${messageOf(error)}`);
    }
  }

  #change(client: Client, found: readonly PlacedMembership[], knowsAlready: boolean): void {
    const heardBefore = new Set([...this.#options.roster.all].filter((other) => other.audience.has(client)));
    const before = client.audience;
    const receivedBefore = placesOf(client.memberships, 'OUT');
    const sentBefore = before.places;
    const hearersBefore = new Set(before.members);
    client.memberships = found;
    client.audience = this.#options.audiences.hold(placesOf(found, 'IN'));
    const receives = placesOf(found, 'OUT');
    const atMs = this.#options.now().getTime();
    const later = receives.filter((place) => !receivedBefore.includes(place)).map((place) => [place, atMs] as const);
    client.receivesSince = new Map([...(client.receivesSince ?? []), ...later]);
    this.#options.audiences.place(client, receives);
    this.#options.audiences.release(before);
    this.#options.others?.changed(client);

    if (!knowsAlready) this.#options.outboxes.send(this.#options.serverEvent(groupsChanged()), [client]);
    this.#options.presence.replayTo(
      client,
      [...this.#options.roster.all].filter((other) => !heardBefore.has(other)),
    );
    this.#options.presence.replayElsewhereTo(client, receivedBefore);
    const latest = client.shown?.latest;
    if (latest?.isKept !== true) return;
    const added = client.audience.places.filter((place) => !sentBefore.includes(place));
    if (added.length > 0) this.#options.others?.toPlaces(latest, added, { sender: client, isReport: true });
    const hearers = client.audience.members.filter((other) => !hearersBefore.has(other));
    this.#options.outboxes.send(latest, hearers, client);
  }

  async #takeInTurn(client: Client): Promise<void> {
    this.#running++;
    try {
      await this.#take(client, false, this.#options.memberships.of(client.certificate));
    } finally {
      this.#running--;
    }
  }
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

const MAX_REMEMBERED = 10_000;

/**
 * The groups of whoever is on the stream or wants to be, remembered for the time when the directory
 * does not answer. Rule `keepGroupsWhileDirectoryIsAway`: who was seen before keeps the groups of
 * then, so that an outage takes nobody off the stream. Who was never seen is not let in: the group
 * of the anonymous is for those whom the directory does not know.
 */
export class Memberships {
  readonly #groups: StreamGroups;
  readonly #log: Log;
  readonly #learned = new Map<string, readonly PlacedMembership[]>();
  #unavailable = false;

  constructor(groups: StreamGroups, log: Log) {
    this.#groups = groups;
    this.#log = log;
  }

  /**
   * `closed`: the account is not active. `unknown`: nobody can say now, and these were never
   * learned. Never rejects.
   */
  async of(certificate: ClientCertificate): Promise<readonly PlacedMembership[] | 'closed' | 'unknown'> {
    const key = `${certificate.channels} ${nameKey(certificate.commonName)}`;
    try {
      const found = await this.#groups.of(certificate);
      if (this.#unavailable) this.#log.info('stream.groups_read_again');
      this.#unavailable = false;
      if (found === 'closed') this.#learned.delete(key);
      else this.#learn(key, found);
      return found;
    } catch (error) {
      if (!this.#unavailable)
        this.#log.warn('stream.groups_unreadable', {
          error: messageOf(error),
          consequence: 'groups stay as they were',
        });
      this.#unavailable = true;
      return this.#learned.get(key) ?? 'unknown';
    }
  }

  /** What has changed is not remembered; without names for everybody. */
  forget(usernames?: readonly string[]): void {
    if (usernames === undefined) return this.#learned.clear();
    for (const username of usernames)
      for (const channels of [true, false]) this.#learned.delete(`${channels} ${nameKey(username)}`);
  }

  #learn(key: string, memberships: readonly PlacedMembership[]): void {
    this.#learned.delete(key);
    this.#learned.set(key, memberships);
    const [oldest] = this.#learned.keys();
    if (this.#learned.size > MAX_REMEMBERED && oldest !== undefined) this.#learned.delete(oldest);
  }
}
