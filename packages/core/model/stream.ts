// Defines the interfaces of the stream, between its parts and to the rest of the core.

import type { Duplex } from 'node:stream';
import type { ThinningRow } from '@holdfast/kit/core-wire';
import type { Log } from '@holdfast/kit/log';
import type { Arrival, ClientCertificate, Membership, RefusedConnection, Subscriptions } from './parts.ts';
import type { StoredEvent } from './stored-event.ts';

/**
 * From bytes of a connection to whole events, in one of both framings. Holds what is not yet whole:
 * at most one event.
 */
export interface FrameReader {
  /** Takes in what came; the reader may keep the chunk until the frames in it are read. */
  push(chunk: Buffer): void;
  /**
   * The next whole event, a view that is good until the next `push`; undefined when more bytes are
   * needed. Throws a StreamFault.
   */
  next(): Buffer | undefined;
  /**
   * What was pushed and is no part of an event that was handed out: for the framing that comes
   * after this one.
   */
  rest(): Buffer;
  /** Bytes of an event that is not yet whole. */
  readonly heldBytes: number;
}

/** An element of an event; spans count bytes of the event. Texts have their entities resolved. */
export interface CotElement {
  readonly name: string;
  attribute(name: string): string | undefined;
  /** Names and values in their order. */
  attributes(): readonly (readonly [string, string])[];
  /** The first so many. */
  children(most: number): readonly CotElement[];
  /** First child of that name. */
  child(name: string): CotElement | undefined;
  /** All the text inside, without markup. */
  text(): string;
  /** A copy of its bytes, and whether it has these: for what seldom changes. */
  bytes(): Buffer;
  hasBytes(bytes: Buffer): boolean;
}

export interface CotPoint {
  lat: number;
  lon: number;
  hae: number;
  ce: number;
  le: number;
}

/**
 * One event of the stream: well-formed, with uid, type and a point of finite numbers. It lies in
 * the bytes it was read from: whoever needs it after the turn in which it came takes out texts, not
 * the event. Cheap: only what is asked for is decoded.
 */
export interface CotEvent {
  readonly uid: string;
  readonly type: string;
  readonly how: string;
  readonly access: string | undefined;
  readonly qos: string | undefined;
  readonly opex: string | undefined;
  readonly caveat: string | undefined;
  readonly releaseableTo: string | undefined;
  /** As written by the sender; they need not be dates. */
  readonly time: string | undefined;
  readonly start: string | undefined;
  readonly stale: string | undefined;
  readonly point: CotPoint;
  /**
   * First child of `<detail>` of that name; undefined where there is none. Finding none costs
   * nearly nothing.
   */
  detail(name: string): CotElement | undefined;
}

/** What the server writes over each event that it hands on; one object serves a whole second. */
export interface Stamp {
  /** Whole seconds: `2026-11-22T05:30:00Z`. */
  time: string;
  /** Name of the attribute in `_flow-tags_`: `TAK-Server-<nodeId>`. */
  tag: string;
}

/**
 * An event as receivers get it: time and flow tag of the server, no `<marti>`. Good as long as its
 * event.
 */
export interface Delivery {
  /** An upper bound for `writeXml`. */
  readonly maxXmlBytes: number;
  /** Writes declaration and event; returns where it ends. */
  writeXml(target: Buffer, at: number): number;
  /** Header and TakMessage; made once. */
  protobuf(): Buffer;
  /**
   * The whole `<detail>…</detail>` element as the archive keeps it; `<detail/>` when the event has
   * none.
   */
  detail(): string;
  /** As the tables will have it. */
  stored(): StoredEvent;
}

/** An event of the server itself. */
export interface ServerEvent {
  uid: string;
  type: string;
  how: string;
  staleMs: number;
  /** What stands inside `<detail>`: XML of ours, values escaped. */
  detail: string;
  /** 0/0 with unknown errors where it is not given. */
  point?: CotPoint;
}

/** Chat of an event, for its own table. */
export interface ChatFields {
  senderCallsign: string | null;
  destCallsign: string | null;
  /** One row for each; null: one row without. */
  destUids: readonly (string | null)[];
  content: string | null;
  room: string | null;
}

/** What the archive needs of an event: texts, so that the event may go. */
export interface ArchivedEvent {
  /** The person. */
  sender: string;
  uid: string;
  type: string;
  how: string;
  access: string | undefined;
  qos: string | undefined;
  opex: string | undefined;
  caveat: string | undefined;
  releaseableTo: string | undefined;
  /** As delivered: the server's. */
  time: string;
  /** As the sender wrote them; an event whose dates are none is skipped, as a release does. */
  start: string | undefined;
  stale: string | undefined;
  point: CotPoint;
  /** The whole element, as delivered. */
  detail: string;
  receivedAtMs: number;
  /**
   * Places of the groups it went to, ascending: the same array again and again for the same
   * audience.
   */
  places: readonly number[];
  chat?: ChatFields;
}

/** Takes events into the database in batches. Nothing here throws or waits. */
export interface Archive {
  store(event: ArchivedEvent): void;
  /**
   * The database takes events more slowly than they come, and this sender has an even share or more
   * of what waits: they rest until `onRoom`. False while it takes none at all.
   */
  isFullFor(sender: string): boolean;
  /** Called each time after it has become false for everybody. */
  onRoom(resume: () => void): void;
  counts(): ArchiveCounts;
  /** Writes what is waiting, for at most so long. */
  close(graceMs: number): Promise<void>;
}

export interface ArchiveCounts {
  waiting: number;
  capacity: number;
  stored: number;
  /**
   * Dates missing or unreadable: not stored, as in a release; or a number or text that no row
   * takes.
   */
  skipped: number;
  lost: number;
}

/** How a client shows itself. */
export interface Presence {
  callsign: string;
  uid: string;
  username: string;
  team: string;
  role: string;
  /** `ATAK-CIV:5.3.0` */
  clientVersion: string;
  places: readonly number[];
}

/**
 * Writes `client_endpoint` and its events, in the order of the calls, behind the stream's back:
 * nothing here throws or waits.
 */
export interface PresenceLog {
  came(who: Presence, at: Date): void;
  went(who: Presence, at: Date): void;
}

/** Where an event was sent to, by one `<dest>` of `<marti>`. */
export interface MissionDestination {
  name: string | undefined;
  guid: string | undefined;
}

/**
 * A device of a person. Anybody may give the uid of another's device: it counts together with its
 * person only.
 */
export interface StreamDevice {
  clientUid: string;
  username: string;
}

/** What the stream asks of the missions. */
export interface MissionPosts {
  /**
   * An event was sent to a mission: its uid becomes content of it, if whoever sends may write
   * there. Resolves with the devices that are subscribed, to which it goes; with none when there is
   * no such mission or it may not be written.
   */
  post(destination: MissionDestination, event: MissionPost, from: MissionSender): Promise<readonly StreamDevice[]>;
}

export interface MissionPost {
  uid: string;
  type: string;
  callsign: string | undefined;
  iconsetPath: string | undefined;
  /** A number, as the sender wrote it. */
  color: string | undefined;
  point: Pick<CotPoint, 'lat' | 'lon'>;
}

export interface MissionSender {
  username: string;
  clientUid: string;
  /** Places of the groups it may send into. */
  places: readonly number[];
}

/** What the API says on the stream. */
export interface StreamNotices {
  /** To those that are connected. */
  toDevices(devices: readonly StreamDevice[], event: ServerEvent): void;
  /** To everybody who receives from one of the groups at these places; `except` is a uid. */
  toPlaces(places: readonly number[], event: ServerEvent, except?: string): void;
}

/** A membership with the place of its group. */
export interface PlacedMembership extends Membership {
  place: number;
}

/** The groups of a person as the stream needs them. */
export interface StreamGroups {
  /**
   * Memberships that are switched on, with their places; `closed` for an account that the directory
   * knows and that is not active. Rejects with an AppError when directory or database are away.
   */
  of(certificate: ClientCertificate): Promise<readonly PlacedMembership[] | 'closed'>;
  /** What is asked next is asked of the directory; without names for everybody. */
  forget(usernames?: readonly string[]): void;
}

export interface StreamCounts {
  clients: number;
  /** Since the start. */
  read: number;
  bytesRead: number;
  delivered: number;
  bytesWritten: number;
  /** Of readers that were too slow. */
  dropped: number;
  /** Well-formed and no CoT event: no uid, no type, no point. */
  invalid: number;
  /** Connections that ended with a StreamFault. */
  faults: number;
  thinning: { seconds: number; held: number; replaced: number };
}

/** Somebody who was let in on 8089: what the stream needs of an `Arrival`. */
export interface StreamArrival extends Pick<Arrival, 'clientAddress' | 'clientPort' | 'known' | 'busy' | 'idle'> {
  socket: Duplex;
  /** From the beginning, without asking. Default: XML, until both agree on protobuf. */
  framing?: 'protobuf';
}

export interface CoreStream extends Subscriptions, StreamNotices {
  /** What the listener of 8089 hands over. */
  accepted(arrival: StreamArrival): void;
  /** `clientUid` has switched them. Resolves with those whose groups are unreadable now. */
  regroup(usernames: readonly string[], clientUid: string | undefined): Promise<string[]>;
  /**
   * To all who are connected now, whatever their groups, and to no table. Returns how many they
   * are; waits for nobody.
   */
  toEverybody(event: ServerEvent): number;
  counts(): StreamCounts;
  /** Ends every connection with a disconnect notice in the tables. */
  close(): Promise<void>;
}

export interface StreamOptions {
  nodeId: string;
  /** `5.7-RELEASE-0` */
  serverVersion: string;
  groups: StreamGroups;
  archive: Archive;
  presence: PresenceLog;
  missions: MissionPosts;
  /** What these people get instead of an event that no frame holds. `sender` is shown to them. */
  largeEvents: { pointerTo(event: StoredEvent, receivers: Iterable<string>, sender: string): ServerEvent };
  log: Log;
  now: () => Date;
  /** Hears of devices that are not let in; default: only the log does. */
  refused?: (who: RefusedConnection) => void;
  limits?: Partial<StreamLimits>;
  /** Default: none. Position reports are thinned from the smallest number of clients on. */
  thinning?: readonly ThinningRow[];
}

export interface StreamLimits {
  maxEventBytes: number;
  /** Of all clients together: what is not yet whole, and what is kept while missions are asked. */
  maxHalvesBytes: number;
  /** Waiting for one reader; beyond it the oldest events are dropped. */
  maxWaitingBytes: number;
  /** A reader that has taken nothing for so long while something waits for it is disconnected. */
  stalledMs: number;
  /** How often the groups of everybody are taken anew. */
  regroupEveryMs: number;
}

/** Ends the connection that it came by alone. Its message is logged: no client's bytes in it. */
export class StreamFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StreamFault';
  }
}
