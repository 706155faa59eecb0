// Tracks which clients are present. Binds a client to the callsign and uid of its first position
// report. New clients get the newest report of everyone they can receive, and others learn when a
// client leaves.

import { nameKey } from '@holdfast/kit/names';
import type {
  CotElement,
  CotEvent,
  Delivery,
  Presence,
  PresenceLog,
  ServerEvent,
  Stamp,
  StreamDevice,
} from '../model/stream.ts';
import { type Client, KeptEvent, placesOf, type Redeliver, type View } from './client.ts';
import { meet, type OtherNodes } from './other-nodes.ts';
import type { Outboxes, Outgoing } from './outboxes.ts';
import { disconnected } from './server-events.ts';

export interface ClientPresenceOptions {
  roster: Roster;
  outboxes: Outboxes;
  log: PresenceLog;
  redeliver: Redeliver;
  serverEvent: (event: ServerEvent) => Outgoing;
  /** Undefined while there is one node. */
  others: OtherNodes | undefined;
  now: () => Date;
}

const MAX_CHARACTERS = 256;
const MAX_COMPARED_BYTES = 1024;
/**
 * A longer report is handed on and not kept. Whoever comes gets those of everybody in one turn, and
 * like any slow reader it keeps what may wait for it: of more than 4 MB the first ones go. A device
 * sends the next one in seconds.
 */
const MAX_REPORT_BYTES = 8 * 1024;
/** As devices without one show it. */
const UNKNOWN = '';

export class ClientPresence {
  readonly #options: ClientPresenceOptions;
  readonly #unsettled = new Set<KeptEvent>();

  constructor(options: ClientPresenceOptions) {
    this.#options = options;
  }

  /**
   * Takes a position report in, and says whether it is kept for those who come later: what is not
   * `forAll` is not.
   */
  /** A relay reports others too: only what is of the uid that the connection is bound to counts. */
  saw(event: CotEvent, from: Client, delivery: Delivery, stamp: Stamp, forAll: boolean): boolean {
    const contact = event.detail('contact');
    if (contact === undefined) return false;
    const { shown } = from;
    if (shown !== undefined && shown.uid !== event.uid) return false;
    if (shown === undefined || shown.contact === undefined || !contact.hasBytes(shown.contact)) {
      const callsign = text(contact, 'callsign');
      if (callsign === '' || contact.attribute('endpoint') === undefined) return false;
      if (shown === undefined && event.uid.length > MAX_CHARACTERS) return false;
      if (shown === undefined) this.#bind(event, from, callsign);
      else this.#rename(shown, from, callsign);
      if (from.shown !== undefined) from.shown.contact = small(contact);
      this.#options.others?.changed(from);
    }
    if (shown !== undefined) this.#follow(shown, event, from);
    if (!forAll || from.shown?.latest.keep(delivery, stamp) !== true) return false;
    this.#settleSoon(from.shown.latest);
    return true;
  }

  /** The newest reports of all that it can hear, or of those. */
  replayTo(client: Client, of: Iterable<Client> = this.#options.roster.all): void {
    for (const other of of) {
      const latest = other.shown?.latest;
      if (other === client || latest === undefined || !latest.isKept) continue;
      if (other.audience.has(client)) this.#options.outboxes.send(latest, [client]);
    }
  }

  /** The same of the other nodes. `heardBefore` are places that it received from already. */
  replayElsewhereTo(client: Client, heardBefore?: readonly number[]): void {
    for (const latest of this.#options.others?.reportsFor(client, heardBefore) ?? [])
      this.#options.outboxes.send(latest, [client]);
  }

  /** After it was taken off the roster; its audience still stands. */
  /**
   * Who came back by a newer connection is still there, and so is whoever else is heard under that
   * uid.
   */
  left(client: Client): void {
    const { shown } = client;
    if (shown === undefined) return;
    const others = this.#options.roster.ofUid(shown.uid);
    const own = others.filter(({ username }) => username === client.username);
    const elsewhere = this.#options.others?.ofUid(shown.uid) ?? [];
    const ownElsewhere = elsewhere.filter(({ username }) => username === client.username);
    if (own.length + ownElsewhere.length === 0) {
      const notices = client.audience.members.filter(
        (member) =>
          !others.some(({ audience }) => audience.has(member)) &&
          !elsewhere.some(({ sendsTo }) => meet(sendsTo, placesOf(member.memberships, 'OUT'))),
      );
      this.#options.outboxes.send(this.#options.serverEvent(disconnected(shown.uid, shown.type)), notices, client);
    }
    const logged = [...own.map((other) => other.shown?.logged), ...ownElsewhere.map((other) => other.logged)];
    if (!logged.some((each) => each !== undefined && isSame(each, shown.logged)))
      this.#options.log.went(shown.logged, this.#options.now());
  }

  /** The server stops: nobody is told, the tables are. */
  wentWithAll({ shown }: Client): void {
    if (shown !== undefined) this.#options.log.went(shown.logged, this.#options.now());
  }

  /** Of many reports in a turn the last one is copied. */
  #settleSoon(latest: KeptEvent): void {
    if (this.#unsettled.size === 0) setImmediate(() => this.#settleAll());
    this.#unsettled.add(latest);
  }

  #settleAll(): void {
    for (const latest of this.#unsettled) latest.settle();
    this.#unsettled.clear();
  }

  #bind(event: CotEvent, from: Client, callsign: string): void {
    const seen = look(event, callsign);
    const logged: Presence = {
      callsign,
      uid: seen.uid,
      username: from.username,
      team: seen.team,
      role: seen.role,
      clientVersion: seen.takVersion === '' ? seen.takClient : `${seen.takClient}:${seen.takVersion}`,
      places: from.audience.places,
    };
    const latest = new KeptEvent(this.#options.redeliver, MAX_REPORT_BYTES);
    from.shown = { ...seen, latest, contact: undefined, group: small(event.detail('__group')), logged };
    this.#options.roster.bind(from);
    this.#options.log.came(logged, this.#options.now());
  }

  #rename(shown: View, from: Client, callsign: string): void {
    if (shown.callsign === callsign) return;
    this.#options.roster.unbind(from);
    shown.callsign = callsign;
    this.#options.roster.bind(from);
  }

  #follow(shown: View, event: CotEvent, from: Client): void {
    if (shown.type !== event.type) {
      shown.type = short(event.type);
      this.#options.others?.changed(from);
    }
    const group = event.detail('__group');
    if (group === undefined ? shown.team + shown.role === '' : shown.group !== undefined && group.hasBytes(shown.group))
      return;
    shown.team = text(group, 'name');
    shown.role = text(group, 'role');
    shown.group = small(group);
    this.#options.others?.changed(from);
  }
}

function look(event: CotEvent, callsign: string): Omit<View, 'latest' | 'contact' | 'group' | 'logged'> {
  const group = event.detail('__group');
  const takv = event.detail('takv');
  return {
    uid: event.uid,
    callsign,
    team: text(group, 'name'),
    role: text(group, 'role'),
    takClient: text(takv, 'platform'),
    takVersion: text(takv, 'version'),
    type: short(event.type),
  };
}

function text(element: CotElement | undefined, name: string): string {
  const value = element?.attribute(name);
  return value === undefined ? UNKNOWN : short(value);
}

/** A copy: a part of a text keeps the whole of it in memory. */
function short(value: string): string {
  if (value.length <= MAX_CHARACTERS) return value;
  return Buffer.from(value.slice(0, MAX_CHARACTERS), 'utf16le').toString('utf16le');
}

/** What is large is read anew each time. */
function small(element: CotElement | undefined): Buffer | undefined {
  const bytes = element?.bytes();
  return bytes !== undefined && bytes.length <= MAX_COMPARED_BYTES ? bytes : undefined;
}

/** One row of the table. */
function isSame(a: Presence, b: Presence): boolean {
  return a.callsign === b.callsign && a.team === b.team && a.role === b.role;
}

/**
 * Everybody on the stream, by what they are called. Several connections may go by the same name:
 * the newest one counts.
 */
export class Roster {
  readonly all = new Set<Client>();
  readonly #uids = new ByName();
  readonly #callsigns = new ByName();
  readonly #users = new ByName();

  bind(client: Client): void {
    if (client.shown === undefined) return;
    this.#uids.add(client.shown.uid, client);
    this.#callsigns.add(client.shown.callsign, client);
  }

  /** Its uid or callsign has changed: called before and after. */
  unbind(client: Client): void {
    if (client.shown === undefined) return;
    this.#uids.remove(client.shown.uid, client);
    this.#callsigns.remove(client.shown.callsign, client);
  }

  add(client: Client): void {
    this.all.add(client);
    this.#users.add(nameKey(client.username), client);
  }

  remove(client: Client): void {
    this.unbind(client);
    this.all.delete(client);
    this.#users.remove(nameKey(client.username), client);
  }

  /** Newest first. */
  ofUid(uid: string): readonly Client[] {
    return this.#uids.of(uid);
  }

  /** The newest connection of that device, of its person. */
  ofDevice({ clientUid, username }: StreamDevice, fits: (client: Client) => boolean = () => true): Client | undefined {
    const key = nameKey(username);
    return this.#uids.of(clientUid).find((client) => nameKey(client.username) === key && fits(client));
  }

  ofCallsign(callsign: string): readonly Client[] {
    return this.#callsigns.of(callsign);
  }

  ofUser(username: string): readonly Client[] {
    return this.#users.of(nameKey(username));
  }
}

const NOBODY: readonly Client[] = [];

class ByName {
  readonly #clients = new Map<string, readonly Client[]>();

  of(name: string): readonly Client[] {
    return this.#clients.get(name) ?? NOBODY;
  }

  add(name: string, client: Client): void {
    const among = this.#clients.get(name) ?? NOBODY;
    const older = among.findIndex(({ number }) => number < client.number);
    this.#clients.set(name, among.toSpliced(older < 0 ? among.length : older, 0, client));
  }

  remove(name: string, client: Client): void {
    const left = (this.#clients.get(name) ?? []).filter((each) => each !== client);
    if (left.length === 0) this.#clients.delete(name);
    else this.#clients.set(name, left);
  }
}
