// Connects the stream of this node with the other nodes of a cluster: the seam, and what its
// clients get from there. A single node pays nothing.

import type { Subscription } from '../model/parts.ts';
import type { CotEvent, Presence, ServerEvent, StreamDevice } from '../model/stream.ts';
import { type Audiences, type Client, couldHear } from './client.ts';
import { type GeoFilter, isHidden, placed } from './geo-filter.ts';
import type { Outboxes, Outgoing } from './outboxes.ts';
import { disconnected } from './server-events.ts';

/** A client that is connected to another node. */
export interface RemoteClient {
  /** Unique in the cluster. */
  readonly number: number;
  readonly node: string;
  readonly username: string;
  /** Of its first position report; empty before. */
  readonly uid: string;
  readonly callsign: string;
  /** Type of its newest report. */
  readonly type: string;
  /** Places of the groups that it may send into. */
  readonly sendsTo: readonly number[];
  /** Places of the groups that it receives from. */
  readonly receivesFrom: readonly number[];
  /** As the tables have it; undefined before the first report. */
  readonly logged: Presence | undefined;
  /** Its node keeps back what it hides. */
  readonly filter: GeoFilter | undefined;
}

/** An event that another node has handed on. */
export interface RelayedEvent extends Outgoing {
  /** Read when somebody asks; undefined when it cannot be read. */
  event(): CotEvent | undefined;
}

export interface RelayedToPlaces {
  event: RelayedEvent;
  /** Of a device that doesn't get it. */
  except?: string | undefined;
}

export interface SentTo {
  /** The client that it came from; undefined for an event of the server. */
  sender?: Client | undefined;
  /** Its newest position report, for those who come later. */
  isReport?: boolean;
  /** Not to the device of that uid. */
  except?: string | undefined;
}

/** What the stream tells the other nodes, and asks of them. Nothing here throws or waits. */
export interface OtherNodes {
  /** Numbers of clients on this node are greater. */
  readonly firstNumber: number;
  /** How many clients they have. */
  readonly size: number;
  /** To everybody there who receives from one of these places. */
  toPlaces(event: Outgoing, places: readonly number[], sent?: SentTo): void;
  /** To these clients, as far as they receive from one of the places; undefined: from any. */
  toClients(event: Outgoing, clients: readonly RemoteClient[], places: readonly number[] | undefined): void;
  /** Returns how many clients are there. */
  toEverybody(event: Outgoing): number;
  ofUid(uid: string): readonly RemoteClient[];
  ofCallsign(callsign: string): readonly RemoteClient[];
  ofDevice(device: StreamDevice): readonly RemoteClient[];
  /** The newest reports of those there whom it hears, now and not by these places already. */
  reportsFor(client: Client, heardBefore?: readonly number[]): Iterable<Outgoing>;
  /** A client of this node came, shows itself anew, or has other groups. */
  changed(client: Client): void;
  left(client: Client): void;
  /** The first client of this node receives from that place, or the last one no longer does. */
  interest(place: number, isWanted: boolean): void;
  subscriptions(): Subscription[];
  /** False when there is none of that subscriptionUid or clientUid. */
  end(uid: string): boolean;
}

/**
 * What the other nodes tell the stream of this one. `sentMs`, since 1970, is given for an event
 * that comes again: it is not for those who could not have heard it then.
 */
export interface LocalClients {
  all(): Iterable<Client>;
  /** Each, in this order, to everybody here who receives from one of these places. */
  relay(events: readonly RelayedToPlaces[], places: readonly number[], sentMs?: number): void;
  /** To clients of these numbers that receive from one of the places. */
  relayTo(
    event: RelayedEvent,
    numbers: readonly number[],
    places: readonly number[] | undefined,
    sentMs?: number,
  ): void;
  relayToEverybody(event: RelayedEvent, sentMs?: number): void;
  /** A client of another node has left, and is no longer among them. */
  leftElsewhere(client: RemoteClient): void;
}

/** Whether two sets of places have one in common. */
export function meet(a: readonly number[], b: readonly number[]): boolean {
  return a.some((place) => b.includes(place));
}

export interface RelayOptions {
  roster: { readonly all: ReadonlySet<Client>; ofUid(uid: string): readonly Client[] };
  audiences: Audiences<Client>;
  outboxes: Outboxes;
  others: OtherNodes;
  serverEvent: (event: ServerEvent) => Outgoing;
}

export class Relay implements LocalClients {
  readonly #options: RelayOptions;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  all(): Iterable<Client> {
    return this.#options.roster.all;
  }

  relay(events: readonly RelayedToPlaces[], places: readonly number[], sentMs = Infinity): void {
    const hearing = [...this.#options.audiences.among(places)].filter((client) => couldHear(client, places, sentMs));
    const isFiltered = hearing.some(({ filter }) => filter !== undefined);
    for (const { event, except } of events) {
      const gets = (client: Client): boolean =>
        (except === undefined || client.shown?.uid !== except) && !isHiddenFrom(client, event);
      this.#options.outboxes.send(event, except === undefined && !isFiltered ? hearing : hearing.filter(gets));
    }
  }

  /** By the groups as this node knows them: the sender's node may not know the newest. */
  relayTo(
    event: RelayedEvent,
    numbers: readonly number[],
    places: readonly number[] | undefined,
    sentMs = Infinity,
  ): void {
    const wanted = new Set(numbers);
    const hearing = places && this.#options.audiences.among(places);
    const receivers = [...this.#options.roster.all].filter(
      (client) => wanted.has(client.number) && hearing?.has(client) !== false && couldHear(client, places, sentMs),
    );
    this.#options.outboxes.send(event, receivers);
  }

  relayToEverybody(event: RelayedEvent, sentMs = Infinity): void {
    const receivers = [...this.#options.roster.all].filter((client) => couldHear(client, undefined, sentMs));
    this.#options.outboxes.send(event, receivers);
  }

  /** As ClientPresence does for a client of this node. */
  leftElsewhere({ uid, username, type, sendsTo }: RemoteClient): void {
    const { roster, audiences, others, outboxes, serverEvent } = this.#options;
    if (uid === '') return;
    const [here, there] = [roster.ofUid(uid), others.ofUid(uid)];
    if ([...here, ...there].some((other) => other.username === username)) return;
    const receivers = [...audiences.among(sendsTo)].filter(
      (client) =>
        !here.some(({ audience }) => audience.has(client)) &&
        !there.some((other) => audiences.among(other.sendsTo).has(client)),
    );
    outboxes.send(serverEvent(disconnected(uid, type)), receivers);
  }
}

function isHiddenFrom({ filter }: Client, relayed: RelayedEvent): boolean {
  if (filter === undefined) return false;
  const event: CotEvent | undefined = relayed.event();
  return event !== undefined && isHidden(filter, placed(event));
}

/** Those of other nodes that hear the sender, one for each person. */
export function remoteHearing(found: readonly RemoteClient[], places: readonly number[]): readonly RemoteClient[] {
  const newest = new Map<string, RemoteClient>();
  for (const client of found) if (meet(client.receivesFrom, places)) newest.set(client.username, client);
  return [...newest.values()];
}
