// The stream of 8089 put together: who connects, what they say, who hears it.

import { codeOf, messageOf } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { SECOND_MS } from '@holdfast/kit/time';
import type { Subscription } from '../model/parts.ts';
import {
  type CoreStream,
  type CotEvent,
  type Delivery,
  type PlacedMembership,
  type ServerEvent,
  type Stamp,
  type StreamArrival,
  StreamFault,
  type StreamLimits,
  type StreamOptions,
} from '../model/stream.ts';
import { type Client, createAudiences, placesOf, type Redeliver } from './client.ts';
import {
  type Connection,
  type ConnectionParts,
  createConnection,
  type Framing,
  type ReadCounts,
} from './connection.ts';
import { halfEvents } from './half-events.ts';
import { createOutboxes, type Outgoing } from './outboxes.ts';
import { createPresence } from './presence.ts';
import { CLOSED, createMemberships, createRegrouping } from './regrouping.ts';
import { createRoster } from './roster.ts';
import { createRouter } from './router.ts';
import { createServerEvents } from './server-events.ts';
import { createStreamEvents } from './stream-events.ts';
import { decodeEvent } from './wire/protobuf-decode.ts';
import { protobufFrames } from './wire/protobuf-frames.ts';
import { xmlFrames } from './wire/xml-frames.ts';
import { readEvent } from './wire/xml-read-event.ts';
import { deliveryOf } from './wire/xml-write-event.ts';

// The two framings as the stream uses them, and events that are read again to be written in the other form.

export interface Framings {
  xml: () => Framing;
  protobuf: () => Framing;
  deliveryOf: (event: CotEvent, stamp: Stamp) => Delivery;
  redeliver: Redeliver;
}

const EVENT_START = '<event';

export function framings(mostEventBytes: number): Framings {
  return {
    xml: () => ({ reader: xmlFrames(mostEventBytes), read: readEvent }),
    protobuf: () => ({ reader: protobufFrames(mostEventBytes), read: decodeEvent }),
    deliveryOf,

    /** Rule `limitsCountForWhatComes`: what the server has added may bring an event beyond them; then it stays XML. */
    redeliver(xml, stamp) {
      try {
        const event = readEvent(xml.subarray(xml.indexOf(EVENT_START)));
        return event && deliveryOf(event, stamp);
      } catch (error) {
        if (error instanceof StreamFault) return undefined;
        throw error;
      }
    },
  };
}

// A client of the stream as the lists of the API show it.
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
  };
}

// The time and the flow tag that the server writes over events: one object for a whole second.

/** `atMs` since 1970. */
export function stamps(nodeId: string): (atMs: number) => Stamp {
  const tag = `TAK-Server-${nodeId}`;
  let second = Number.NaN;
  let stamp: Stamp = { time: '', tag };
  return (atMs) => {
    const at = Math.floor(atMs / SECOND_MS);
    if (at !== second) {
      second = at;
      stamp = { time: new Date(at * SECOND_MS).toISOString().replace('.000Z', 'Z'), tag };
    }
    return stamp;
  };
}

const LIMITS: StreamLimits = {
  mostEventBytes: 8 * 1024 * 1024,
  mostHalvesBytes: 256 * 1024 * 1024,
  mostWaitingBytes: 4 * 1024 * 1024,
  stalledMs: 60_000,
  regroupEveryMs: 60_000,
};
/** Of all slow readers together. */
const MOST_WAITING_TOGETHER_BYTES = 256 * 1024 * 1024;
const LOOK_EVERY_MS = 1_000;
const STOPS = 'the server stops';
const UNKNOWN_GROUPS = 'the groups cannot be read now, and were never read before';

/** Accepts at once. To be closed: a timer of its own looks after slow readers and groups. */
export function createStream(options: StreamOptions): CoreStream {
  const { archive, presence: presenceLog, missions, log, now } = options;
  const limits = { ...LIMITS, ...options.limits };
  const steadyMs = (): number => performance.now();
  const counts: ReadCounts = { read: 0, bytesRead: 0, invalid: 0, faults: 0 };
  const connections = new Map<Client, Connection>();
  /** Their groups are not known yet; `isOld`: they have changed since they were asked for. */
  const arriving = new Map<StreamArrival, { key: string; isOld: boolean }>();
  let lastNumber = 0;
  let closing = false;

  const roster = createRoster();
  const audiences = createAudiences<Client>();
  const outboxes = createOutboxes({ ...limits, mostWaitingTogetherBytes: MOST_WAITING_TOGETHER_BYTES }, steadyMs);
  const events = createStreamEvents(log, steadyMs);
  const memberships = createMemberships(options.groups, log);
  const { xml, protobuf, deliveryOf, redeliver } = framings(limits.mostEventBytes);
  const server = createServerEvents(options.serverVersion, now);
  const serverEvent = (event: ServerEvent): Outgoing => server.of(event);
  const presence = createPresence({ roster, outboxes, log: presenceLog, redeliver, serverEvent, now });
  const routing = { roster, audiences, outboxes, presence, archive, missions, deliveryOf, redeliver, serverEvent, log };
  const parts: ConnectionParts = {
    audiences,
    outboxes,
    router: createRouter(routing),
    server,
    archive,
    resting: new Set(),
    halves: halfEvents(limits.mostHalvesBytes),
    counts,
    events,
    stampAt: stamps(options.nodeId),
    xml,
    protobuf,
    now,
  };
  const regrouping = createRegrouping({
    memberships,
    roster,
    audiences,
    presence,
    outboxes,
    serverEvent,
    everyMs: limits.regroupEveryMs,
    steadyMs,
  });
  archive.onRoom(() => {
    const waiting = [...parts.resting];
    parts.resting.clear();
    for (const goOn of waiting) goOn();
  });
  const looking = setInterval(look, Math.min(LOOK_EVERY_MS, limits.stalledMs / 4, limits.regroupEveryMs / 4)).unref();

  function look(): void {
    outboxes.look();
    for (const client of roster.all)
      if (client.outbox.isStalled(limits.stalledMs)) client.end('it has read nothing while events wait for it');
    regrouping.look();
    events.tick(outboxes.state.dropped);
  }

  function accepted(arrival: StreamArrival): void {
    const { socket, known } = arrival;
    if (known === undefined || closing) {
      socket.destroy();
      return;
    }
    arrival.idle();
    arriving.set(arrival, { key: nameKey(known.certificate.commonName), isOld: false });
    socket.once('close', () => arriving.delete(arrival));
    admit(arrival, known).catch((error: unknown) => {
      log.error('stream.failed', { error: messageOf(error) });
      socket.destroy();
    });
  }

  async function admit(
    arrival: StreamArrival,
    { certificate }: Pick<NonNullable<StreamArrival['known']>, 'certificate'>,
  ): Promise<void> {
    const found = await memberships.of(certificate);
    const asked = arriving.get(arrival);
    if (asked?.isOld === true) {
      asked.isOld = false;
      return admit(arrival, { certificate });
    }
    arriving.delete(arrival);
    if (arrival.socket.destroyed || closing) {
      arrival.socket.destroy();
      return;
    }
    const username = certificate.commonName;
    if (found !== 'closed' && found !== 'unknown') {
      join(arrival, { number: ++lastNumber, certificate, username, memberships: found });
      return;
    }
    const reason = found === 'closed' ? CLOSED : UNKNOWN_GROUPS;
    events.happened('refused', { username, address: arrival.clientAddress }, reason);
    arrival.socket.destroy();
  }

  /** In this order: the groups count, it gets the newest report of all whom it can hear, then what the server speaks. */
  function join(
    arrival: StreamArrival,
    who: Pick<Client, 'number' | 'certificate' | 'username'> & { memberships: readonly PlacedMembership[] },
  ): void {
    const connection = createConnection(arrival, who, parts);
    const { client } = connection;
    connections.set(client, connection);
    roster.add(client);
    audiences.place(client, placesOf(client.memberships, 'OUT'));
    arrival.socket.once('close', () => leave(connection, endOf(arrival.socket)));
    events.happened('connected', client);
    presence.replayTo(client);
    outboxes.send(server.offer(), [client]);
    connection.open();
  }

  function leave(connection: Connection, end: string): void {
    const { client } = connection;
    if (!connections.delete(client)) return;
    connection.closed();
    roster.remove(client);
    audiences.leave(client);
    if (closing) presence.wentWithAll(client);
    else presence.left(client);
    audiences.release(client.audience);
    events.happened('disconnected', client, connection.endedBy ?? end);
  }

  return {
    accepted,
    regroup: (usernames, clientUid) => {
      options.groups.forget(usernames);
      const keys = new Set(usernames.map(nameKey));
      for (const asked of arriving.values()) asked.isOld ||= keys.has(asked.key);
      return regrouping.regroup(usernames, clientUid);
    },

    list: (): Subscription[] => [...roster.all].map(subscriptionOf),

    end(uid) {
      const client = [...roster.all].find(({ number }) => `tls:${number}` === uid) ?? roster.ofUid(uid)[0];
      client?.end('ended by an administrator');
      return client !== undefined;
    },

    toDevices(devices, event) {
      outboxes.send(serverEvent(event), [...new Set(devices.flatMap((device) => roster.ofDevice(device) ?? []))]);
    },

    toPlaces(places, event, except) {
      const receivers = [...audiences.among(places)].filter(
        ({ shown }) => except === undefined || shown?.uid !== except,
      );
      outboxes.send(serverEvent(event), receivers);
    },

    toEverybody(event) {
      const receivers = [...roster.all];
      outboxes.send(serverEvent(event), receivers);
      return receivers.length;
    },

    counts: () => {
      const { delivered, bytesWritten, dropped } = outboxes.state;
      return { clients: roster.all.size, ...counts, delivered, bytesWritten, dropped };
    },

    async close() {
      closing = true;
      clearInterval(looking);
      for (const { socket } of arriving.keys()) socket.destroy();
      for (const connection of connections.values()) {
        connection.client.end(STOPS);
        leave(connection, STOPS);
      }
    },
  };
}

/** Of a connection that the stream has not ended itself. */
function endOf({ errored, readableEnded }: StreamArrival['socket']): string {
  if (errored !== null && errored !== undefined)
    return `the connection broke: ${codeOf(errored) ?? messageOf(errored)}`;
  if (readableEnded) return 'closed by the client';
  return 'closed by the server: the certificate is revoked or no longer valid, or the port closes';
}
