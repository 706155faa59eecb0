// One connection of the stream: who it is, its framing, what it says. It reads on when its events are taken, and rests while
// the archive is full or a mission is asked.

import { messageOf } from '@holdfast/kit/app-error';
import {
  type Archive,
  type CotEvent,
  type FrameReader,
  type Stamp,
  type StreamArrival,
  StreamFault,
} from '../model/stream.ts';
import { type Audiences, type Client, placesOf } from './client.ts';
import type { HalfEvents, Holder } from './half-events.ts';
import type { Outboxes } from './outboxes.ts';
import type { Asked, Router } from './router.ts';
import type { ServerEvents } from './server-events.ts';
import type { StreamEvents } from './stream-events.ts';

// Events that are for the server alone: they are never handed on.

const PING = 't-x-c-t';
const PROTOCOL_REQUEST = 't-x-takp-q';
const CONTROL: ReadonlySet<string> = new Set([
  't-b',
  't-b-a',
  't-b-c',
  't-b-q',
  't-x-c-f',
  PING,
  't-x-c-t-r',
  PROTOCOL_REQUEST,
  't-x-c-m',
  't-x-c-i-e',
  't-x-c-i-d',
]);

export function isControl(type: string): boolean {
  return CONTROL.has(type);
}

export function isPing(type: string): boolean {
  return type === PING;
}

export function isProtocolRequest(type: string): boolean {
  return type === PROTOCOL_REQUEST;
}

/** Of the protobuf framing that a client asks for. */
export function requestedVersion(event: CotEvent): string | undefined {
  return event.detail('TakControl')?.child('TakRequest')?.attribute('version');
}

export interface Framing {
  reader: FrameReader;
  /** Undefined for what is no event. */
  read: (frame: Buffer) => CotEvent | undefined;
}

export interface ReadCounts {
  read: number;
  bytesRead: number;
  invalid: number;
  faults: number;
}

export interface ConnectionParts {
  audiences: Audiences<Client>;
  outboxes: Outboxes;
  router: Router;
  server: ServerEvents;
  archive: Pick<Archive, 'isFullFor'>;
  /** Who rests until the archive has room, in the order in which they came to rest. */
  resting: Set<() => void>;
  halves: HalfEvents<Holder>;
  counts: ReadCounts;
  events: StreamEvents;
  stampAt: (atMs: number) => Stamp;
  xml: () => Framing;
  protobuf: () => Framing;
  now: () => Date;
}

/** A client with what drives it. */
export interface Connection {
  client: Client;
  /** Its groups count and it was told what it needs: from now on it is heard. */
  open(): void;
  /** Its socket has closed. */
  closed(): void;
  /** Why it ended, if the server has ended it. */
  readonly endedBy: string | undefined;
}

/** Reads nothing before `open`. */
export function createConnection(
  arrival: StreamArrival,
  who: Pick<Client, 'number' | 'certificate' | 'username' | 'memberships'>,
  parts: ConnectionParts,
): Connection {
  const { socket, clientAddress } = arrival;
  const { archive, counts, halves, outboxes, router, server, now } = parts;
  const isFull = (): boolean => archive.isFullFor(who.username);
  let framing = parts.xml();
  /** Missions are asked. */
  let asked: Asked | undefined;
  /** One answer to all the pings that came together. */
  let hasPinged = false;
  /** The client has closed: what it has sent before that still counts. */
  let hasLeft = false;
  let ended = false;
  let endedBy: string | undefined;

  const client: Client = {
    ...who,
    address: clientAddress,
    port: socket.remotePort ?? 0,
    outbox: outboxes.open(socket),
    audience: parts.audiences.hold(placesOf(who.memberships, 'IN')),
    shown: undefined,
    processed: 0,
    lastReadMs: now().getTime(),
    end,
  };

  /** Whom the bound of all connections ends gives back what it holds. */
  const holder: Holder = {
    end(reason) {
      asked?.kept.forget();
      end(reason);
    },
  };

  function end(reason: string): void {
    if (ended) return;
    ended = true;
    endedBy = reason;
    socket.destroy();
  }

  function take(chunk: Buffer): void {
    if (ended) return;
    counts.bytesRead += chunk.length;
    guarded(() => {
      framing.reader.push(chunk);
      readOn();
    });
  }

  /** Rule `oneConnectionOnly`: whatever is wrong with what a client sends ends its connection, and nothing else. */
  function guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof StreamFault) counts.faults++;
      else parts.events.happened('failed', client, error instanceof Error ? error.stack : messageOf(error));
      end(messageOf(error));
    }
  }

  function readOn(): void {
    const atMs = now().getTime();
    while (!ended && asked === undefined) {
      if (isFull()) break;
      const frame = framing.reader.next();
      if (frame === undefined) break;
      client.lastReadMs = atMs;
      handle(frame, atMs);
    }
    if (ended) return;
    answerPings();
    hold();
    if (isFull()) parts.resting.add(goOn);
    if (asked !== undefined || isFull()) socket.pause();
    else if (hasLeft) socket.destroy();
    else if (socket.isPaused()) socket.resume();
  }

  function handle(frame: Buffer, atMs: number): void {
    if (client.processed === 0) arrival.busy();
    counts.read++;
    client.processed++;
    const event = framing.read(frame);
    if (event === undefined) counts.invalid++;
    else if (isControl(event.type)) control(event);
    else ask(router.route(event, client, parts.stampAt(atMs), atMs));
  }

  /** What is not yet whole, and the event for which missions are asked, also after the connection has broken. */
  function hold(): void {
    halves.holds(holder, (ended ? 0 : framing.reader.heldBytes) + (asked?.kept.mostXmlBytes ?? 0));
  }

  function ask(missions: Asked | undefined): void {
    asked = missions;
    asked?.done.then(
      () => {
        asked = undefined;
        hold();
        goOn();
      },
      (error: unknown) => end(messageOf(error)),
    );
  }

  function control(event: CotEvent): void {
    if (isPing(event.type)) hasPinged = true;
    else if (isProtocolRequest(event.type) && client.outbox.form === 'xml') negotiate(event);
  }

  function answerPings(): void {
    if (hasPinged) outboxes.send(server.pong(), [client]);
    hasPinged = false;
  }

  /** The answer still goes as XML. */
  function negotiate(event: CotEvent): void {
    const agreed = requestedVersion(event) === '1';
    outboxes.send(server.answer(event.uid, agreed), [client]);
    if (!agreed) return;
    const rest = framing.reader.rest();
    framing = parts.protobuf();
    outboxes.changeForm(client.outbox, 'protobuf');
    framing.reader.push(rest);
  }

  /** A socket that rests says so too, when nothing of it is unread. */
  function leaves(): void {
    hasLeft = true;
    client.outbox.stop();
    goOn();
  }

  function goOn(): void {
    if (!ended) guarded(readOn);
  }

  return {
    client,
    open() {
      // Else it closes by itself while its events wait, and nothing can end it any more: a revocation finds open sockets.
      socket.allowHalfOpen = true;
      socket.on('data', take);
      socket.on('end', leaves);
    },
    closed() {
      ended = true;
      parts.resting.delete(goOn);
      hold();
      client.outbox.end();
    },
    get endedBy() {
      return endedBy;
    },
  };
}
