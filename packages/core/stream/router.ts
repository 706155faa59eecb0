// Routes events to all receivers of the sender or to those it names, and to the archive.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { nameKey } from '@holdfast/kit/names';
import type {
  Archive,
  CotEvent,
  Delivery,
  MissionPost,
  MissionPosts,
  ServerEvent,
  Stamp,
  StreamDevice,
} from '../model/stream.ts';
import { type Audiences, type Client, KeptEvent, type Redeliver } from './client.ts';
import { type Destinations, destinationsOf, type DeviceDestination } from './destinations.ts';
import { archivedEvent, chatFieldsOf, isChat, isMessage, missionPost, undelivered } from './event-parts.ts';
import { geoFilterOf, isHidden, type Placed, placed } from './geo-filter.ts';
import { meet, type OtherNodes, type RemoteClient, remoteHearing, type SentTo } from './other-nodes.ts';
import type { Outboxes, Outgoing } from './outboxes.ts';
import type { ClientPresence, Roster } from './presence.ts';
import type { Repeater } from './repeater.ts';
import type { Thinning } from './thinning.ts';

/** Types that begin so are alarms. */
const ALARM = 'b-a-';

export interface Request {
  /** Never rejects. */
  done: Promise<void>;
  /** The event meanwhile. When it is forgotten, subscribers of the missions do not get it. */
  kept: KeptEvent;
}

export interface RouterOptions {
  roster: Roster;
  audiences: Audiences<Client>;
  outboxes: Outboxes;
  presence: ClientPresence;
  archive: Pick<Archive, 'store'>;
  missions: MissionPosts;
  deliveryOf: (event: CotEvent, stamp: Stamp) => Delivery;
  redeliver: Redeliver;
  serverEvent: (event: ServerEvent) => Outgoing;
  repeater: Pick<Repeater, 'saw'>;
  /** Undefined while there is one node. */
  others: OtherNodes | undefined;
  thinning: Pick<Thinning, 'admit' | 'forget'>;
  log: Log;
}

interface Reached {
  /** Undefined is everybody who hears the sender. */
  reached: Set<Client> | undefined;
  /** A device that it names is not there. */
  isMissing: boolean;
  /** Whether that client of another node has it. */
  hasElsewhere: (client: RemoteClient) => boolean;
}

interface HeldForMissions {
  post: MissionPost;
  kept: KeptEvent;
}

const NO_ONE = (): boolean => false;
const MAX_PLACE_SETS = 1_000;

export class Router {
  readonly #options: RouterOptions;
  readonly #placeSets = new Map<string, readonly number[]>();
  #unavailableMissions = false;
  /** Clients with a filter: while there is none, no event is compared with any. */
  readonly #filtered = new Set<Client>();

  constructor(options: RouterOptions) {
    this.#options = options;
  }

  /**
   * An event of that client. When missions have to be asked nothing more of the client is to be
   * read until that is done, so that its order is kept.
   */
  route(event: CotEvent, from: Client, stamp: Stamp, atMs: number): Request | undefined {
    const destinations = destinationsOf(event);
    const delivery = this.#options.deliveryOf(event, stamp);
    const isReport = this.#options.presence.saw(event, from, delivery, stamp, destinations.broadcast);
    const reached = this.#deliver(event, delivery, stamp, destinations, { sender: from, isReport });
    this.#store(event, delivery, stamp, atMs, from, destinations);
    if (event.type.startsWith(ALARM))
      this.#options.repeater.saw(event, delivery, from.username, this.#placesFor(from, destinations));
    const requested = destinations.missions.length === 0 ? undefined : this.#heldForMissions(event, delivery, stamp);
    const returned = reached.isMissing && isMessage(event.type) ? undelivered(event, delivery.detail()) : undefined;
    if (returned !== undefined) this.#options.outboxes.send(this.#options.serverEvent(returned), [from]);
    return requested && { done: this.#throughMissions(requested, from, destinations, reached), kept: requested.kept };
  }

  /** What the client wants to hear of from now on. */
  filter(client: Client, event: CotEvent): void {
    const filter = geoFilterOf(event);
    if (filter === 'unreadable') return;
    client.filter = filter;
    if (filter === undefined) this.#filtered.delete(client);
    else this.#filtered.add(client);
    this.#options.others?.changed(client);
  }

  /** It has left. */
  forget(client: Client): void {
    this.#filtered.delete(client);
    this.#options.thinning.forget(client);
  }

  /** A report that was held goes to everyone who hears its sender now. */
  deliverHeld(held: KeptEvent, place: Placed, from: Client, isReport: boolean): void {
    const hearing = this.#hearing(() => place, from.audience.members);
    this.#options.outboxes.send(held, hearing, from);
    this.#options.others?.toPlaces(held, from.audience.places, { sender: from, isReport });
  }

  /** Without those whose filter hides it. */
  #hearing(placeOf: () => Placed, members: readonly Client[]): readonly Client[] {
    if (this.#filtered.size === 0) return members;
    const place = placeOf();
    return members.filter((member) => !hides(member, place));
  }

  /** To devices that it names whatever their filter. */
  #deliver(
    event: CotEvent,
    delivery: Delivery,
    stamp: Stamp,
    destinations: Destinations,
    sent: SentTo & { sender: Client },
  ): Reached {
    const { broadcast, explicit, devices, groups } = destinations;
    const { others } = this.#options;
    const from = sent.sender;
    const isElsewhere = (device: DeviceDestination): boolean => this.#elsewhere(device, from).length > 0;
    if (broadcast) {
      const hearing = this.#hearing(() => placed(event), from.audience.members);
      const { now, isHeld } = this.#options.thinning.admit({ event, delivery, stamp, from, explicit }, hearing);
      this.#options.outboxes.send(delivery, now, from);
      if (!isHeld) others?.toPlaces(delivery, from.audience.places, sent);
      const isMissing = devices.some((device) => this.#reachable(device, from).length === 0 && !isElsewhere(device));
      return { reached: undefined, isMissing, hasElsewhere: NO_ONE };
    }
    const reached = new Set<Client>();
    let isMissing = false;
    for (const device of devices) {
      const found = this.#reachable(device, from);
      if (found.length === 0 && !isElsewhere(device)) isMissing = true;
      for (const client of found) reached.add(client);
    }
    const hasElsewhere =
      others === undefined ? NO_ONE : this.#deliverElsewhere(others, event, delivery, from, destinations);
    for (const group of groups)
      for (const place of placesInto(group, from))
        for (const member of this.#hearing(() => placed(event), [...this.#options.audiences.among([place])]))
          reached.add(member);
    this.#options.outboxes.send(delivery, [...reached], from);
    return { reached, isMissing, hasElsewhere };
  }

  /**
   * To each client once: whoever is named and in one of the groups gets it by the group, unless its
   * filter hides it there.
   */
  #deliverElsewhere(
    others: OtherNodes,
    event: CotEvent,
    outgoing: Outgoing,
    from: Client,
    { devices, groups }: Destinations,
  ): Reached['hasElsewhere'] {
    const places = [...new Set(groups.flatMap((group) => placesInto(group, from)))];
    if (places.length > 0) others.toPlaces(outgoing, places, { sender: from });
    const place = placed(event);
    const hasByGroup = (client: RemoteClient): boolean => meet(client.receivesFrom, places) && !hides(client, place);
    const named = new Map(
      devices.flatMap((device) => this.#elsewhere(device, from)).map((each) => [each.number, each]),
    );
    const rest = [...named.values()].filter((client) => !hasByGroup(client));
    if (rest.length > 0) others.toClients(outgoing, rest, from.audience.places);
    return (client) => named.has(client.number) || hasByGroup(client);
  }

  /** As `#reachable`, on the other nodes. */
  #elsewhere({ uid, callsign }: DeviceDestination, from: Client): readonly RemoteClient[] {
    const { others } = this.#options;
    if (others === undefined) return [];
    const byUid = uid === undefined ? [] : remoteHearing(others.ofUid(uid), from.audience.places);
    return byUid.length > 0 || callsign === undefined
      ? byUid
      : remoteHearing(others.ofCallsign(callsign), from.audience.places);
  }

  /** Whoever goes by that uid, else by that callsign, among those that hear the sender. */
  #reachable({ uid, callsign }: DeviceDestination, from: Client): readonly Client[] {
    const byUid = uid === undefined ? [] : this.#newest(this.#options.roster.ofUid(uid), from);
    return byUid.length > 0 || callsign === undefined
      ? byUid
      : this.#newest(this.#options.roster.ofCallsign(callsign), from);
  }

  /**
   * The newest connection of each person: who gives the uid of another takes nothing away from
   * them.
   */
  #newest(clients: readonly Client[], from: Client): readonly Client[] {
    if (clients.length === 0) return clients;
    const found = new Map<string, Client>();
    for (const client of clients) {
      const person = nameKey(client.username);
      if (client !== from && !found.has(person) && from.audience.has(client)) found.set(person, client);
    }
    return found.size > 0 ? [...found.values()] : clients.filter((each) => each === from);
  }

  #store(
    event: CotEvent,
    delivery: Delivery,
    stamp: Stamp,
    atMs: number,
    from: Client,
    destinations: Destinations,
  ): void {
    if (!destinations.archive) return;
    const chat = isChat(event.type) ? chatFieldsOf(event, destinations) : undefined;
    if (chat === undefined && isChat(event.type)) return;
    this.#options.archive.store(
      archivedEvent(event, delivery, stamp, {
        sender: from.username,
        atMs,
        places: this.#placesFor(from, destinations),
        chat,
      }),
    );
  }

  /**
   * The groups it went to: those of the sender, or those it names; none when it was for devices
   * alone.
   */
  #placesFor(from: Client, { broadcast, groups, missions: named }: Destinations): readonly number[] {
    if (broadcast || named.length > 0) return from.audience.places;
    return this.#interned([...new Set(groups.flatMap((group) => placesInto(group, from)))].toSorted((a, b) => a - b));
  }

  #interned(places: readonly number[]): readonly number[] {
    const key = places.join();
    const known = this.#placeSets.get(key);
    if (known !== undefined) return known;
    if (this.#placeSets.size >= MAX_PLACE_SETS) this.#placeSets.clear();
    this.#placeSets.set(key, places);
    return places;
  }

  /** What outlives the turn. */
  #heldForMissions(event: CotEvent, delivery: Delivery, stamp: Stamp): HeldForMissions {
    const kept = new KeptEvent(this.#options.redeliver, Infinity);
    kept.keep(delivery, stamp);
    kept.settle();
    return { post: missionPost(event), kept };
  }

  async #throughMissions(
    { post, kept }: HeldForMissions,
    from: Client,
    destinations: Destinations,
    { reached, hasElsewhere }: Reached,
  ): Promise<void> {
    const sender = { username: from.username, clientUid: from.shown?.uid ?? '', places: from.audience.places };
    const { others } = this.#options;
    const more = new Set<Client>();
    const elsewhere = new Set<RemoteClient>();
    for (const mission of destinations.missions)
      for (const device of await this.#posted(() => this.#options.missions.post(mission, post, sender))) {
        // As it is now: the sender may have gone meanwhile, and its audience with it.
        const hearing = this.#options.audiences.among(sender.places);
        const found = this.#options.roster.ofDevice(device, (client) => client !== from && hearing.has(client));
        if (found !== undefined && reached?.has(found) === false) more.add(found);
        if (reached !== undefined)
          for (const client of remoteHearing(others?.ofDevice(device) ?? [], sender.places))
            if (!hasElsewhere(client)) elsewhere.add(client);
      }
    if (!kept.isKept) return;
    this.#options.outboxes.send(kept, [...more], from);
    if (elsewhere.size > 0) others?.toClients(kept, [...elsewhere], sender.places);
  }

  /**
   * Rule `missionsAway`: without the database nobody is known to be subscribed; whom the event
   * names otherwise has it.
   */
  async #posted(post: () => Promise<readonly StreamDevice[]>): Promise<readonly StreamDevice[]> {
    try {
      const devices = await post();
      this.#unavailableMissions = false;
      return devices;
    } catch (error) {
      if (!this.#unavailableMissions) this.#options.log.warn('stream.mission_unreached', { error: messageOf(error) });
      this.#unavailableMissions = true;
      return [];
    }
  }
}

function hides({ filter }: Pick<Client, 'filter'>, place: Placed): boolean {
  return filter !== undefined && isHidden(filter, place);
}

function placesInto(group: string, { memberships }: Client): number[] {
  const into = memberships.find(({ name, direction }) => direction === 'IN' && name === group);
  return into === undefined ? [] : [into.place];
}
