// Keeps the clients of the other nodes: by name, with the newest report of those whom somebody here
// hears.

import { nameKey } from '@holdfast/kit/names';
import { z } from 'zod';
import type { Subscription } from '../model/parts.ts';
import type { StreamDevice } from '../model/stream.ts';
import { type Client, placesOf, subscriptionOf } from '../stream/client.ts';
import { meet, type RelayedEvent, type RemoteClient } from '../stream/other-nodes.ts';

const direction = z.enum(['IN', 'OUT']);
/** A client as its node tells the others. */
export const cardSchema = z.object({
  number: z.number(),
  type: z.string(),
  memberships: z.array(z.object({ name: z.string(), direction, place: z.int() })),
  logged: z
    .object({
      callsign: z.string(),
      uid: z.string(),
      username: z.string(),
      team: z.string(),
      role: z.string(),
      clientVersion: z.string(),
      places: z.array(z.int()),
    })
    .optional(),
  filter: z
    .object({
      boxes: z.array(z.object({ south: z.number(), west: z.number(), north: z.number(), east: z.number() })),
      hidesClients: z.boolean(),
    })
    .optional(),
  subscription: z.object({
    subscriptionUid: z.string(),
    certificate: z.object({
      serial: z.string(),
      hash: z.string(),
      commonName: z.string(),
      subject: z.string(),
      channels: z.boolean(),
    }),
    callsign: z.string(),
    clientUid: z.string(),
    lastReport: z.coerce.date(),
    takClient: z.string(),
    takVersion: z.string(),
    username: z.string(),
    groups: z.array(z.object({ name: z.string(), direction })),
    team: z.string(),
    role: z.string(),
    address: z.string(),
    port: z.number(),
    pendingWrites: z.number(),
    processed: z.number(),
    protocol: z.string(),
    framing: z.enum(['xml', 'protobuf']),
  }),
});
export type Card = z.infer<typeof cardSchema>;

export function cardOf(client: Client): Card {
  const { position: _, ...subscription } = subscriptionOf(client);
  const { number, shown, filter } = client;
  const memberships = client.memberships.map(({ name, direction: way, place }) => ({ name, direction: way, place }));
  return {
    number,
    type: shown?.type ?? '',
    memberships,
    subscription,
    ...(filter && { filter: { ...filter, boxes: [...filter.boxes] } }),
    ...(shown === undefined ? {} : { logged: { ...shown.logged, places: [...shown.logged.places] } }),
  };
}

export class Remote implements RemoteClient {
  readonly node: string;
  readonly number: number;
  readonly type: string;
  readonly sendsTo: readonly number[];
  readonly receivesFrom: readonly number[];
  readonly logged: RemoteClient['logged'];
  readonly filter: RemoteClient['filter'];
  readonly #subscription: Card['subscription'];
  /** Its newest report; undefined while nobody here hears it. */
  latest: RelayedEvent | undefined;

  constructor(node: string, card: Card, latest: RelayedEvent | undefined) {
    this.node = node;
    this.number = card.number;
    this.type = card.type;
    this.sendsTo = placesOf(card.memberships, 'IN');
    this.receivesFrom = placesOf(card.memberships, 'OUT');
    this.logged = card.logged;
    this.filter = card.filter;
    this.#subscription = card.subscription;
    this.latest = latest;
  }

  get username(): string {
    return this.#subscription.username;
  }

  get uid(): string {
    return this.#subscription.clientUid;
  }

  get callsign(): string {
    return this.#subscription.callsign;
  }

  subscription(): Subscription {
    return { ...this.#subscription, node: this.node };
  }

  /** `lastReadMs` since 1970. */
  seen(lastReadMs: number, processed: number): void {
    this.#subscription.lastReport = new Date(lastReadMs);
    this.#subscription.processed = processed;
  }
}

const NOBODY: readonly Remote[] = [];

export class RemoteClients {
  readonly #all = new Map<number, Remote>();
  readonly #uids = new Map<string, Remote[]>();
  readonly #callsigns = new Map<string, Remote[]>();

  get(number: number): Remote | undefined {
    return this.#all.get(number);
  }

  all(): Iterable<Remote> {
    return this.#all.values();
  }

  get size(): number {
    return this.#all.size;
  }

  of(node: string): Remote[] {
    return [...this.#all.values()].filter((client) => client.node === node);
  }

  /** Those with clients that receive from one of the places. */
  nodesOf(places: readonly number[]): string[] {
    const found = new Set<string>();
    for (const { node, receivesFrom } of this.#all.values())
      if (!found.has(node) && meet(receivesFrom, places)) found.add(node);
    return [...found];
  }

  /** Adds a client, or replaces what was known of it. */
  put(node: string, card: Card): Remote {
    const before = this.#all.get(card.number);
    if (before !== undefined) this.#unbind(before);
    const client = new Remote(node, card, before?.latest);
    this.#all.set(client.number, client);
    if (client.uid === '') return client;
    this.#uids.set(client.uid, [...(this.#uids.get(client.uid) ?? []), client]);
    this.#callsigns.set(client.callsign, [...(this.#callsigns.get(client.callsign) ?? []), client]);
    return client;
  }

  remove(number: number): Remote | undefined {
    const client = this.#all.get(number);
    if (client === undefined) return undefined;
    this.#all.delete(number);
    this.#unbind(client);
    return client;
  }

  ofUid(uid: string): readonly Remote[] {
    return this.#uids.get(uid) ?? NOBODY;
  }

  ofCallsign(callsign: string): readonly Remote[] {
    return this.#callsigns.get(callsign) ?? NOBODY;
  }

  ofDevice({ clientUid, username }: StreamDevice): readonly Remote[] {
    const key = nameKey(username);
    return this.ofUid(clientUid).filter((client) => nameKey(client.username) === key);
  }

  /** Drops the newest reports of those whom nobody here hears any more: they grow old. */
  forgetReports(isHeard: (place: number) => boolean): void {
    for (const client of this.#all.values()) if (!client.sendsTo.some(isHeard)) client.latest = undefined;
  }

  /** The newest reports of those who send into one of the places, and into none of `but`. */
  *reports(places: readonly number[], but: readonly number[]): Iterable<RelayedEvent> {
    for (const { latest, sendsTo } of this.#all.values())
      if (latest !== undefined && meet(sendsTo, places) && !meet(sendsTo, but)) yield latest;
  }

  #unbind(client: Remote): void {
    for (const [names, name] of [
      [this.#uids, client.uid],
      [this.#callsigns, client.callsign],
    ] as const) {
      const left = (names.get(name) ?? []).filter((each) => each !== client);
      if (left.length === 0) names.delete(name);
      else names.set(name, left);
    }
  }
}
