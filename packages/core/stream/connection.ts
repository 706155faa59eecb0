// Handles one connection of the stream: identity, framing, events. Stops reading while the archive
// is full or a mission is being looked up.

import { messageOf } from '@holdfast/kit/app-error';
import { type Archive, type CotEvent, type Stamp, type StreamArrival, StreamFault } from '../model/stream.ts';
import { type Audiences, type Client, placesOf } from './client.ts';
import type { Framing, HalfEvents, Holder } from './framings.ts';
import type { Outboxes } from './outboxes.ts';
import type { Injectors } from './injectors.ts';
import type { Request, Router } from './router.ts';
import type { ServerEvents } from './server-events.ts';
import type { StreamEvents } from './stream-events.ts';

const PING = 't-x-c-t';
const PROTOCOL_REQUEST = 't-x-takp-q';
const FILTER = 't-x-c-f';
/** Events that are for the server alone: they are never handed on. */
const CONTROL: ReadonlySet<string> = new Set([
  't-b',
  't-b-a',
  't-b-c',
  't-b-q',
  FILTER,
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
  injectors: Pick<Injectors, 'applied'>;
  stampAt: (atMs: number) => Stamp;
  xml: () => Framing;
  protobuf: () => Framing;
  now: () => Date;
}

/** A client with what drives it. */
/** Reads nothing before `open`. */
export class Connection {
  readonly #arrival: StreamArrival;
  readonly #who: Pick<Client, 'number' | 'certificate' | 'username' | 'memberships'>;
  readonly #parts: ConnectionParts;
  #framing;
  /** Missions are asked. */
  #requested: Request | undefined;
  /** One answer to all the pings that came together. */
  #hasPinged = false;
  /** The client has closed: what it has sent before that still counts. */
  #hasLeft = false;
  #ended = false;
  #endedBy: string | undefined;
  readonly client: Client;
  /** Whom the bound of all connections ends gives back what it holds. */
  readonly #holder: Holder;
  readonly #goOn = (): void => {
    if (!this.#ended) this.#guarded(() => this.#readOn());
  };

  constructor(
    arrival: StreamArrival,
    who: Pick<Client, 'number' | 'certificate' | 'username' | 'memberships'>,
    parts: ConnectionParts,
  ) {
    this.#arrival = arrival;
    this.#who = who;
    this.#parts = parts;
    this.#framing = arrival.framing === 'protobuf' ? parts.protobuf() : parts.xml();
    this.client = {
      ...who,
      address: arrival.clientAddress,
      port: arrival.clientPort,
      outbox: parts.outboxes.open(arrival.socket),
      audience: parts.audiences.hold(placesOf(who.memberships, 'IN')),
      shown: undefined,
      filter: undefined,
      processed: 0,
      lastReadMs: parts.now().getTime(),
      connectedMs: parts.now().getTime(),
      receivesSince: undefined,
      end: (reason) => this.#end(reason),
    };
    if (arrival.framing === 'protobuf') this.client.outbox.form = 'protobuf';
    this.#holder = {
      end: (reason) => {
        this.#requested?.kept.forget();
        this.#end(reason);
      },
    };
  }

  /** Its groups count and it was told what it needs: from now on it is heard. */
  open(): void {
    // Else it closes by itself while its events wait, and nothing can end it any more: a revocation
    // finds open sockets.
    this.#arrival.socket.allowHalfOpen = true;
    this.#arrival.socket.on('data', (chunk) => this.#take(chunk));
    this.#arrival.socket.on('end', () => this.#leaves());
  }

  /** Its socket has closed. */
  closed(): void {
    this.#ended = true;
    this.#parts.resting.delete(this.#goOn);
    this.#hold();
    this.client.outbox.end();
  }

  /** Why it ended, if the server has ended it. */
  get endedBy(): string | undefined {
    return this.#endedBy;
  }

  #isFull(): boolean {
    return this.#parts.archive.isFullFor(this.#who.username);
  }

  #end(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#endedBy = reason;
    this.#arrival.socket.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#ended) return;
    this.#parts.counts.bytesRead += chunk.length;
    this.#guarded(() => {
      this.#framing.reader.push(chunk);
      this.#readOn();
    });
  }

  /**
   * Rule `oneConnectionOnly`: whatever is wrong with what a client sends ends its connection, and
   * nothing else.
   */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof StreamFault) this.#parts.counts.faults++;
      else this.#parts.events.happened('failed', this.client, error instanceof Error ? error.stack : messageOf(error));
      this.#end(messageOf(error));
    }
  }

  #readOn(): void {
    const atMs = this.#parts.now().getTime();
    while (!this.#ended && this.#requested === undefined) {
      if (this.#isFull()) break;
      const frame = this.#framing.reader.next();
      if (frame === undefined) break;
      this.client.lastReadMs = atMs;
      this.#handle(frame, atMs);
    }
    if (this.#ended) return;
    this.#answerPings();
    this.#hold();
    if (this.#isFull()) this.#parts.resting.add(this.#goOn);
    if (this.#requested !== undefined || this.#isFull()) this.#arrival.socket.pause();
    else if (this.#hasLeft) this.#arrival.socket.destroy();
    else if (this.#arrival.socket.isPaused()) this.#arrival.socket.resume();
  }

  #handle(frame: Buffer, atMs: number): void {
    if (this.client.processed === 0) this.#arrival.busy();
    this.#parts.counts.read++;
    this.client.processed++;
    const read = this.#framing.read(frame);
    const event = read && this.#parts.injectors.applied(read);
    if (event === undefined) this.#parts.counts.invalid++;
    else if (isControl(event.type)) this.#control(event);
    else this.#ask(this.#parts.router.route(event, this.client, this.#parts.stampAt(atMs), atMs));
  }

  /**
   * What is not yet whole, and the event for which missions are asked, also after the connection
   * has broken.
   */
  #hold(): void {
    this.#parts.halves.holds(
      this.#holder,
      (this.#ended ? 0 : this.#framing.reader.heldBytes) + (this.#requested?.kept.maxXmlBytes ?? 0),
    );
  }

  #ask(missions: Request | undefined): void {
    this.#requested = missions;
    this.#requested?.done.then(
      () => {
        this.#requested = undefined;
        this.#hold();
        this.#goOn();
      },
      (error: unknown) => this.#end(messageOf(error)),
    );
  }

  #control(event: CotEvent): void {
    if (isPing(event.type)) this.#hasPinged = true;
    else if (event.type === FILTER) this.#parts.router.filter(this.client, event);
    else if (isProtocolRequest(event.type) && this.client.outbox.form === 'xml') this.#negotiate(event);
  }

  #answerPings(): void {
    if (this.#hasPinged) this.#parts.outboxes.send(this.#parts.server.pong(), [this.client]);
    this.#hasPinged = false;
  }

  /** The answer still goes as XML. */
  #negotiate(event: CotEvent): void {
    const agreed = requestedVersion(event) === '1';
    this.#parts.outboxes.send(this.#parts.server.answer(event.uid, agreed), [this.client]);
    if (!agreed) return;
    const rest = this.#framing.reader.rest();
    this.#framing = this.#parts.protobuf();
    this.#parts.outboxes.changeForm(this.client.outbox, 'protobuf');
    this.#framing.reader.push(rest);
  }

  /** A socket that rests says so too, when nothing of it is unread. */
  #leaves(): void {
    this.#hasLeft = true;
    this.client.outbox.stop();
    this.#goOn();
  }
}
