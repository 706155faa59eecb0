// Describes a client for the parts of the stream: identity, rights, presentation.

import type { ClientCertificate, ReportedPosition, Subscription } from '../model/parts.ts';
import type { StoredEvent } from '../model/stored-event.ts';
import type { Delivery, PlacedMembership, Presence, Stamp } from '../model/stream.ts';
import type { GeoFilter } from './geo-filter.ts';
import type { Outbox } from './outbox.ts';
import type { Outgoing } from './outboxes.ts';

/** How a client shows itself in its position reports. */
export interface View {
  uid: string;
  callsign: string;
  team: string;
  role: string;
  takClient: string;
  takVersion: string;
  /** Type of the newest report. */
  type: string;
  latest: KeptEvent;
  /**
   * The elements that callsign, team and role were read from; undefined for those that are large.
   */
  contact: Buffer | undefined;
  group: Buffer | undefined;
  /** As the tables have it: from the first report. */
  logged: Presence;
}

export interface Client {
  /** Grows with each connection. */
  readonly number: number;
  readonly certificate: ClientCertificate;
  readonly username: string;
  readonly address: string;
  readonly port: number;
  readonly outbox: Outbox;
  /** Those that are switched on. */
  memberships: readonly PlacedMembership[];
  /** Since 1970. */
  readonly connectedMs: number;
  /** The same of places that it receives from since later. */
  receivesSince: ReadonlyMap<number, number> | undefined;
  /** Who hears it. Its places are those of the groups that it may send into. */
  audience: Audience<Client>;
  shown: View | undefined;
  /** Which part of the world it wants to hear of. */
  filter: GeoFilter | undefined;
  /** Events read. */
  processed: number;
  lastReadMs: number;
  end(reason: string): void;
}

/** A client of the stream as the lists of the API show it. */
export function subscriptionOf(client: Client): Subscription {
  const { number, certificate, shown, username, memberships, address, port, outbox, processed, lastReadMs } = client;
  return {
    subscriptionUid: `tls:${number}`,
    certificate,
    callsign: shown?.callsign ?? '',
    clientUid: shown?.uid ?? '',
    lastReport: new Date(lastReadMs),
    takClient: shown?.takClient ?? '',
    takVersion: shown?.takVersion ?? '',
    username,
    groups: memberships.map(({ name, direction }) => ({ name, direction })),
    team: shown?.team ?? '',
    role: shown?.role ?? '',
    address,
    port,
    pendingWrites: outbox.pendingWrites,
    processed,
    protocol: 'tls',
    framing: outbox.form,
    ...(shown === undefined ? {} : { position: () => positionIn(shown.latest) }),
  };
}

/** As devices write a height that they do not know. */
const UNKNOWN_HEIGHT = 9_999_999;

function positionIn(latest: KeptEvent): ReportedPosition | undefined {
  const event = latest.isKept ? latest.stored() : undefined;
  if (event === undefined) return undefined;
  const { lat, lon, hae, time } = event;
  if (lat === null || lon === null) return undefined;
  return { lat, lon, hae: hae === null || Math.abs(hae) >= UNKNOWN_HEIGHT ? null : hae, time };
}

/** The places of the groups that it may send into, or that it receives from. */
export function placesOf(memberships: readonly PlacedMembership[], direction: 'IN' | 'OUT'): number[] {
  return memberships.filter((each) => each.direction === direction).map(({ place }) => place);
}

/** Whether it received from one of the places at that time, since 1970; undefined: from any. */
export function couldHear(
  { memberships, connectedMs, receivesSince }: Client,
  places: readonly number[] | undefined,
  atMs: number,
): boolean {
  if (atMs === Infinity) return true;
  if (connectedMs > atMs) return false;
  const isIn = (place: number): boolean => places?.includes(place) === true && (receivesSince?.get(place) ?? 0) <= atMs;
  return places === undefined || placesOf(memberships, 'OUT').some(isIn);
}

const ROOM_STEP = 256;
const NOTHING: Buffer = Buffer.alloc(0);

/** An event that is read again, as it was stamped; undefined when that cannot be. */
export type Redeliver = (xml: Buffer, stamp: Stamp) => Delivery | undefined;

/**
 * An event that outlives its turn: one copy of its bytes as they were delivered. The newest
 * position report of a client is kept so for those who come later, and an event for a mission until
 * its subscribers are known.
 */
export class KeptEvent implements Outgoing {
  private readonly redeliver: Redeliver;
  private readonly maxBytes: number;
  private room = NOTHING;
  /** What of the room counts; made anew only when the length changes. */
  private xml = this.room;
  private isFilled = false;
  private stamp: Stamp | undefined;
  /** Until it is settled: the event itself. */
  private fresh: Delivery | undefined;
  private frame: Buffer | undefined;

  constructor(redeliver: Redeliver, maxBytes: number) {
    this.redeliver = redeliver;
    this.maxBytes = maxBytes;
  }

  /**
   * Replaces what was kept; false when it is too long, then nothing is. `settle` before the turn
   * ends.
   */
  keep(delivery: Delivery, stamp: Stamp): boolean {
    this.fresh = undefined;
    this.frame = undefined;
    this.isFilled = delivery.maxXmlBytes <= this.maxBytes;
    if (!this.isFilled) return false;
    this.fresh = delivery;
    this.stamp = stamp;
    return true;
  }

  /** Its event may go. */
  settle(): void {
    const { fresh } = this;
    if (fresh === undefined) return;
    const most = fresh.maxXmlBytes;
    if (this.room.length < most) {
      this.room = Buffer.allocUnsafeSlow(Math.ceil(most / ROOM_STEP) * ROOM_STEP);
      this.xml = this.room;
    }
    const length = fresh.writeXml(this.room, 0);
    if (length !== this.xml.length) this.xml = this.room.subarray(0, length);
    this.fresh = undefined;
  }

  /** Its memory is needed. */
  forget(): void {
    this.fresh = undefined;
    this.frame = undefined;
    this.room = NOTHING;
    this.xml = NOTHING;
    this.isFilled = false;
  }

  get isKept(): boolean {
    return this.isFilled;
  }

  get maxXmlBytes(): number {
    return this.fresh?.maxXmlBytes ?? this.xml.length;
  }

  writeXml(target: Buffer, at: number): number {
    return this.fresh?.writeXml(target, at) ?? at + this.xml.copy(target, at);
  }

  stored(): StoredEvent | undefined {
    return (this.fresh ?? (this.stamp && this.redeliver(this.xml, this.stamp)))?.stored();
  }

  /** Empty when it cannot be written so. */
  protobuf(): Buffer {
    if (this.fresh !== undefined) return this.fresh.protobuf();
    this.frame ??= (this.stamp && this.redeliver(this.xml, this.stamp))?.protobuf() ?? NOTHING;
    return this.frame;
  }
}

/** Live: it changes as clients come and go. */
export interface Audience<T> {
  /** Ascending; the same array for the same set. */
  readonly places: readonly number[];
  readonly members: readonly T[];
  has(member: T): boolean;
}

interface Held<T> extends Audience<T> {
  key: string;
  holders: number;
  members: T[];
  /** Where each member stands in `members`. */
  positions: Map<T, number>;
}

const NOBODY: ReadonlySet<never> = new Set();

/**
 * Who receives what is sent into a set of groups. What is asked for at every event is kept ready,
 * and changes with each client that comes, goes or changes its groups: no event looks through all
 * the clients.
 */
export class Audiences<T> {
  readonly #byPlace = new Map<number, Set<T>>();
  readonly #placesOf = new Map<T, readonly number[]>();
  readonly #held = new Map<string, Held<T>>();
  readonly #onInterest: (place: number, isWanted: boolean) => void;

  /** `onInterest` is told when a place gets its first member, and when the last one leaves. */
  constructor(onInterest: (place: number, isWanted: boolean) => void = () => undefined) {
    this.#onInterest = onInterest;
  }

  /** Takes in a member, or its new places. */
  place(member: T, receivesFrom: readonly number[]): void {
    this.leave(member);
    this.#placesOf.set(member, receivesFrom);
    for (const each of receivesFrom) {
      const members = this.#byPlace.get(each);
      if (members === undefined) this.#onInterest(each, true);
      this.#byPlace.set(each, (members ?? new Set()).add(member));
    }
    const received = new Set(receivesFrom);
    for (const audience of this.#held.values())
      if (audience.places.some((each) => received.has(each))) this.#enter(audience, member);
  }

  leave(member: T): void {
    for (const each of this.#placesOf.get(member) ?? []) {
      const members = this.#byPlace.get(each);
      members?.delete(member);
      if (members?.size !== 0) continue;
      this.#byPlace.delete(each);
      this.#onInterest(each, false);
    }
    if (this.#placesOf.delete(member)) for (const audience of this.#held.values()) this.#exit(audience, member);
  }

  /** Kept until it is released as often as it was held. `places` in any order. */
  hold(places: readonly number[]): Audience<T> {
    const sorted = [...new Set(places)].toSorted((a, b) => a - b);
    const key = sorted.join();
    let audience = this.#held.get(key);
    if (audience === undefined) {
      const members = [...this.among(sorted)];
      const positions = new Map(members.map((member, at) => [member, at]));
      audience = { key, holders: 0, places: sorted, members, positions, has: (member) => positions.has(member) };
      this.#held.set(key, audience);
    }
    audience.holders++;
    return audience;
  }

  release(audience: Audience<T>): void {
    const known = this.#held.get(audience.places.join());
    if (known !== audience || known === undefined) return;
    known.holders--;
    if (known.holders === 0) this.#held.delete(known.key);
  }

  /** Who receives from one of these groups, as it is now. */
  among(places: readonly number[]): ReadonlySet<T> {
    const [only] = places;
    if (only === undefined) return NOBODY;
    if (places.length === 1) return this.#byPlace.get(only) ?? NOBODY;
    const all = new Set<T>();
    for (const place of places) for (const member of this.#byPlace.get(place) ?? NOBODY) all.add(member);
    return all;
  }

  #enter(audience: Held<T>, member: T): void {
    if (audience.positions.has(member)) return;
    audience.positions.set(member, audience.members.length);
    audience.members.push(member);
  }

  /** The last one takes the place of whoever leaves. */
  #exit({ positions, members }: Held<T>, member: T): void {
    const at = positions.get(member);
    if (at === undefined) return;
    positions.delete(member);
    const last = members.pop();
    if (last === undefined || last === member) return;
    members[at] = last;
    positions.set(last, at);
  }
}
