// Builds the stream of port 8089: connections, events and receivers.

import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import type { Subscription } from '../model/parts.ts';
import type {
  CoreStream,
  PlacedMembership,
  ServerEvent,
  StreamArrival,
  StreamCounts,
  StreamDevice,
  StreamLimits,
  StreamOptions,
} from '../model/stream.ts';
import { Audiences, type Client, placesOf, type Redeliver, subscriptionOf } from './client.ts';
import { Connection, type ConnectionParts, type ReadCounts } from './connection.ts';
import { framings, HalfEvents, stamps } from './framings.ts';
import { Injectors } from './injectors.ts';
import { type OtherNodes, Relay } from './other-nodes.ts';
import { Outboxes, type Outgoing } from './outboxes.ts';
import { ClientPresence, Roster } from './presence.ts';
import { CLOSED, Memberships, Regrouping } from './regrouping.ts';
import { Repeater } from './repeater.ts';
import { Router } from './router.ts';
import { ServerEvents } from './server-events.ts';
import { StreamEvents } from './stream-events.ts';
import { Thinning } from './thinning.ts';

const LIMITS: StreamLimits = {
  maxEventBytes: 8 * 1024 * 1024,
  maxHalvesBytes: 256 * 1024 * 1024,
  maxWaitingBytes: 4 * 1024 * 1024,
  stalledMs: 60_000,
  regroupEveryMs: 60_000,
};
/** Of all slow readers together. */
const MAX_WAITING_TOGETHER_BYTES = 256 * 1024 * 1024;
const LOOK_EVERY_MS = 1_000;
const STOPS = 'the server stops';
/** Who an event is from that no client has sent just now. */
const SERVER = 'Holdfast';
const UNKNOWN_GROUPS = 'the groups cannot be read now, and were never read before';

/** Accepts at once. To be closed: a timer of its own looks after slow readers and groups. */
export class Stream implements CoreStream {
  readonly #options: StreamOptions;
  readonly #limits;
  readonly #counts: ReadCounts = { read: 0, bytesRead: 0, invalid: 0, faults: 0 };
  readonly #connections = new Map<Client, Connection>();
  /** Their groups are not known yet; `isOld`: they have changed since they were asked for. */
  readonly #arriving = new Map<StreamArrival, { key: string; isOld: boolean }>();
  #lastNumber;
  #closing = false;
  readonly #roster = new Roster();
  readonly #others: OtherNodes | undefined;
  /** What the other nodes send; undefined while there is one node. */
  readonly relay: Relay | undefined;
  readonly #audiences;
  readonly #outboxes;
  readonly #events;
  readonly #memberships;
  readonly #server;
  readonly #presence;
  readonly #router: Router;
  readonly #thinning: Thinning;
  readonly #parts: ConnectionParts;
  readonly #regrouping;
  readonly #looking;
  readonly injectors = new Injectors();
  readonly repeater: Repeater;

  /** Without `others` this is the only node. */
  constructor(options: StreamOptions, others?: OtherNodes) {
    const steadyMs = (): number => performance.now();
    const serverEvent = (event: ServerEvent): Outgoing => this.#server.of(event);
    this.#options = options;
    this.#others = others;
    this.#lastNumber = others?.firstNumber ?? 0;
    this.#audiences = new Audiences<Client>(others && ((place, isWanted) => others.interest(place, isWanted)));
    this.#limits = { ...LIMITS, ...options.limits };
    this.#outboxes = new Outboxes(
      { ...this.#limits, maxWaitingTogetherBytes: MAX_WAITING_TOGETHER_BYTES },
      steadyMs,
      (event, receivers, sender = SERVER) =>
        this.#server.of(options.largeEvents.pointerTo(event, receivers, sender)).protobuf(),
    );
    this.#events = new StreamEvents(options.log, steadyMs);
    this.#memberships = new Memberships(options.groups, options.log);
    const { xml, protobuf, deliveryOf, redeliver } = framings(this.#limits.maxEventBytes);
    this.#server = new ServerEvents(options.serverVersion, options.now);
    this.#presence = new ClientPresence({
      roster: this.#roster,
      outboxes: this.#outboxes,
      log: options.presence,
      redeliver,
      serverEvent,
      others,
      now: options.now,
    });
    this.repeater = new Repeater({ send: (places, event) => this.toPlaces(places, event), now: options.now });
    this.#thinning = this.#createThinning(redeliver, steadyMs);
    const routing = {
      roster: this.#roster,
      audiences: this.#audiences,
      outboxes: this.#outboxes,
      presence: this.#presence,
      archive: options.archive,
      missions: options.missions,
      deliveryOf,
      redeliver,
      serverEvent,
      repeater: this.repeater,
      others,
      thinning: this.#thinning,
      log: options.log,
    };
    this.#router = new Router(routing);
    this.#parts = {
      audiences: this.#audiences,
      outboxes: this.#outboxes,
      router: this.#router,
      server: this.#server,
      archive: options.archive,
      resting: new Set(),
      halves: new HalfEvents(this.#limits.maxHalvesBytes),
      counts: this.#counts,
      events: this.#events,
      injectors: this.injectors,
      stampAt: stamps(options.nodeId),
      xml,
      protobuf,
      now: options.now,
    };
    this.#regrouping = new Regrouping({
      ...routing,
      memberships: this.#memberships,
      everyMs: this.#limits.regroupEveryMs,
      now: options.now,
      steadyMs,
    });
    this.relay = others && new Relay({ ...routing, others });
    options.archive.onRoom(() => {
      const waiting = [...this.#parts.resting];
      this.#parts.resting.clear();
      for (const goOn of waiting) goOn();
    });
    this.#looking = setInterval(
      () => this.#look(),
      Math.min(LOOK_EVERY_MS, this.#limits.stalledMs / 4, this.#limits.regroupEveryMs / 4),
    ).unref();
  }

  accepted(arrival: StreamArrival): void {
    const { socket, known } = arrival;
    if (known === undefined || this.#closing) {
      socket.destroy();
      return;
    }
    arrival.idle();
    this.#arriving.set(arrival, { key: nameKey(known.certificate.commonName), isOld: false });
    socket.once('close', () => this.#arriving.delete(arrival));
    this.#admit(arrival, known).catch((error: unknown) => {
      this.#options.log.error('stream.failed', { error: messageOf(error) });
      socket.destroy();
    });
  }

  regroup(usernames: readonly string[], clientUid: string | undefined): Promise<string[]> {
    this.#options.groups.forget(usernames);
    const keys = new Set(usernames.map(nameKey));
    for (const requested of this.#arriving.values()) requested.isOld ||= keys.has(requested.key);
    return this.#regrouping.regroup(usernames, clientUid);
  }

  /** No groups that were read before let anybody in any more. */
  forgetGroups(): void {
    this.#options.groups.forget();
    this.#memberships.forget();
    for (const requested of this.#arriving.values()) requested.isOld = true;
  }

  list(): Subscription[] {
    return [...[...this.#roster.all].map(subscriptionOf), ...(this.#others?.subscriptions() ?? [])];
  }

  end(uid: string): boolean {
    const client = [...this.#roster.all].find(({ number }) => `tls:${number}` === uid) ?? this.#roster.ofUid(uid)[0];
    client?.end('ended by an administrator');
    return client !== undefined || this.#others?.end(uid) === true;
  }

  toDevices(devices: readonly StreamDevice[], event: ServerEvent): void {
    const outgoing = this.#server.of(event);
    this.#outboxes.send(outgoing, [...new Set(devices.flatMap((device) => this.#roster.ofDevice(device) ?? []))]);
    const elsewhere = devices.flatMap((device) => this.#others?.ofDevice(device) ?? []);
    if (elsewhere.length > 0) this.#others?.toClients(outgoing, [...new Set(elsewhere)], undefined);
  }

  toPlaces(places: readonly number[], event: ServerEvent, except?: string): void {
    const receivers = [...this.#audiences.among(places)].filter(
      ({ shown }) => except === undefined || shown?.uid !== except,
    );
    const outgoing = this.#server.of(event);
    this.#outboxes.send(outgoing, receivers);
    this.#others?.toPlaces(outgoing, places, { except });
  }

  toEverybody(event: ServerEvent): number {
    const receivers = [...this.#roster.all];
    const outgoing = this.#server.of(event);
    this.#outboxes.send(outgoing, receivers);
    return receivers.length + (this.#others?.toEverybody(outgoing) ?? 0);
  }

  counts(): StreamCounts {
    const { delivered, bytesWritten, dropped } = this.#outboxes.state;
    const thinning = this.#thinning.state();
    return { clients: this.#roster.all.size, ...this.#counts, delivered, bytesWritten, dropped, thinning };
  }

  async close(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#looking);
    this.repeater.close();
    this.#thinning.close();
    for (const { socket } of this.#arriving.keys()) socket.destroy();
    for (const connection of this.#connections.values()) {
      connection.client.end(STOPS);
      this.#leave(connection, STOPS);
    }
  }

  #createThinning(redeliver: Redeliver, steadyMs: () => number): Thinning {
    return new Thinning({
      rows: this.#options.thinning ?? [],
      clients: () => this.#roster.all.size + (this.#others?.size ?? 0),
      newest: () => this.#lastNumber,
      send: (...held) => this.#router.deliverHeld(...held),
      redeliver,
      steadyMs,
    });
  }

  #look(): void {
    this.#outboxes.look();
    for (const client of this.#roster.all)
      if (client.outbox.isStalled(this.#limits.stalledMs)) client.end('it has read nothing while events wait for it');
    this.#regrouping.look();
    this.#events.tick(this.#outboxes.state.dropped);
  }

  async #admit(
    arrival: StreamArrival,
    { certificate }: Pick<NonNullable<StreamArrival['known']>, 'certificate'>,
  ): Promise<void> {
    const found = await this.#memberships.of(certificate);
    const query = this.#arriving.get(arrival);
    if (query?.isOld === true) {
      query.isOld = false;
      return this.#admit(arrival, { certificate });
    }
    this.#arriving.delete(arrival);
    if (arrival.socket.destroyed || this.#closing) {
      arrival.socket.destroy();
      return;
    }
    const username = certificate.commonName;
    if (found !== 'closed' && found !== 'unknown') {
      this.#join(arrival, { number: ++this.#lastNumber, certificate, username, memberships: found });
      return;
    }
    const reason = found === 'closed' ? CLOSED : UNKNOWN_GROUPS;
    const who = { username, address: arrival.clientAddress };
    this.#events.happened('refused', who, reason);
    this.#options.refused?.({ ...who, reason });
    arrival.socket.destroy();
  }

  /**
   * In this order: the groups count, it gets the newest report of all whom it can hear, then what
   * the server speaks.
   */
  #join(
    arrival: StreamArrival,
    who: Pick<Client, 'number' | 'certificate' | 'username'> & { memberships: readonly PlacedMembership[] },
  ): void {
    const connection = new Connection(arrival, who, this.#parts);
    const { client } = connection;
    this.#connections.set(client, connection);
    this.#roster.add(client);
    this.#audiences.place(client, placesOf(client.memberships, 'OUT'));
    arrival.socket.once('close', () => this.#leave(connection, endOf(arrival.socket)));
    this.#events.happened('connected', client);
    this.#others?.changed(client);
    this.#presence.replayTo(client);
    this.#presence.replayElsewhereTo(client);
    if (client.outbox.form === 'xml') this.#outboxes.send(this.#server.offer(), [client]);
    connection.open();
  }

  #leave(connection: Connection, end: string): void {
    const { client } = connection;
    if (!this.#connections.delete(client)) return;
    connection.closed();
    this.#router.forget(client);
    this.#roster.remove(client);
    this.#audiences.leave(client);
    this.#others?.left(client);
    if (this.#closing) this.#presence.wentWithAll(client);
    else this.#presence.left(client);
    this.#audiences.release(client.audience);
    this.#events.happened('disconnected', client, connection.endedBy ?? end);
  }
}

/** Of a connection that the stream has not ended itself. */
function endOf({ errored, readableEnded }: StreamArrival['socket']): string {
  if (errored !== null && errored !== undefined)
    return `the connection broke: ${codeOf(errored) ?? messageOf(errored)}`;
  if (readableEnded) return 'closed by the client';
  return 'closed by the server: the certificate is revoked or no longer valid, or the port closes';
}
