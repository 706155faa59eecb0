// Collects the events of a turn for the other nodes and publishes them, one message for each set of
// groups. Keeps the newest messages for nodes that were cut off meanwhile.

import type { Log } from '@holdfast/kit/log';
import type { Outgoing } from '../stream/outboxes.ts';
import type { Bus } from './bus.ts';
import { type Batch, encodeBatch, MAX_MESSAGE_BYTES, type MeshEvent, splitMessage } from './messages.ts';
import { subjects } from './subjects.ts';

export interface SenderOptions {
  node: string;
  bus: Bus;
  /** Names of the other nodes with clients that receive from one of these places. */
  nodesOf: (places: readonly number[]) => readonly string[];
  log: Log;
  now: () => Date;
  maxKeptBytes?: number;
}

export type Target = Pick<Batch, 'places' | 'clients' | 'isAnswer'> & { subjects: readonly string[] };

interface Open extends Target {
  events: MeshEvent[];
  bytes: number;
}

/** What another node has missed: messages after that one, if they were sent since then (1970). */
export interface Missed {
  after: number;
  sinceMs: number;
}

interface Kept {
  subjects: readonly string[];
  message: Buffer;
  sequence: number;
  atMs: number;
}

const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** Node.js cuts smaller buffers from a common one, which would stay with each. */
const OWN_BUFFER_BYTES = Buffer.poolSize / 2;

export class Sender {
  readonly #options: SenderOptions;
  readonly #open = new Map<string, Open>();
  readonly #placeTargets = new WeakMap<readonly number[], { key: string; target: Target }>();
  #sequence = 0;
  #scheduled = false;
  /** Two halves: when the newer one is full, the older one goes. */
  #older: Kept[] = [];
  #newer: Kept[] = [];
  #newerBytes = 0;
  /** The newest one that is kept no more. */
  #forgotten = { sequence: 0, atMs: 0 };
  /** Called before the events of a turn go out. */
  onTurn: () => void = () => undefined;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  toPlaces(event: Outgoing, places: readonly number[], given: Omit<MeshEvent, 'xml'>): void {
    const { key, target } = this.#targetOf(places);
    this.#add(key, target, event, given);
  }

  toNode(event: Outgoing, node: string, target: Omit<Target, 'subjects'>, given: Omit<MeshEvent, 'xml'>): void {
    const key = `${node} ${target.clients?.join() ?? ''} ${target.places?.join() ?? ''} ${target.isAnswer}`;
    this.#add(key, { ...target, subjects: [subjects.node(node)] }, event, given);
  }

  toEverybody(event: Outgoing, given: Omit<MeshEvent, 'xml'>): void {
    this.#add(
      'all',
      { places: undefined, clients: undefined, isAnswer: false, subjects: [subjects.all] },
      event,
      given,
    );
  }

  /** Something else has to go out with this turn. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.flush());
  }

  flush(): void {
    this.#scheduled = false;
    this.onTurn();
    this.publishOpen();
  }

  /** The events so far. */
  publishOpen(): void {
    for (const each of this.#open.values()) this.#publish(each);
    this.#open.clear();
  }

  /** Of the last message. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Something that is no event, to every node, also to those that are cut off now. */
  tell(message: Buffer): void {
    this.#options.bus.publish(subjects.control, message);
    this.#keep({ subjects: [subjects.control], message, sequence: ++this.#sequence });
  }

  /**
   * Publishes on `to` what was missed of what was published on subjects that are wanted, without
   * position reports: newer ones follow. `upTo`: what follows has greater numbers. `isWhole` is
   * false when some of it is kept no more.
   */
  replay(
    to: string,
    { after, sinceMs }: Missed,
    isWanted: (subject: string) => boolean,
  ): { upTo: number; isWhole: boolean } {
    const { bus, log } = this.#options;
    for (const kept of [...this.#older, ...this.#newer])
      if (kept.sequence > after && kept.atMs >= sinceMs && kept.subjects.some(isWanted)) bus.publish(to, kept.message);
    const isWhole = after >= this.#forgotten.sequence || sinceMs > this.#forgotten.atMs;
    if (!isWhole) log.warn('mesh.dropped', { to, reason: 'a node was cut off for too long' });
    return { upTo: this.#sequence, isWhole };
  }

  #targetOf(places: readonly number[]): { key: string; target: Target } {
    const known = this.#placeTargets.get(places);
    if (known !== undefined) return known;
    const target = {
      places,
      clients: undefined,
      isAnswer: false,
      subjects: places.map((place) => subjects.group(place)),
    };
    const made = { key: `places ${places.join()}`, target };
    this.#placeTargets.set(places, made);
    return made;
  }

  #add(key: string, target: Target, event: Outgoing, given: Omit<MeshEvent, 'xml'>): void {
    const room = Buffer.allocUnsafe(event.maxXmlBytes);
    const xml = room.subarray(0, event.writeXml(room, 0));
    let open = this.#open.get(key);
    if (open !== undefined && open.bytes + xml.length > MAX_MESSAGE_BYTES) {
      this.#publish(open);
      open = undefined;
    }
    if (open === undefined) this.#open.set(key, (open = { ...target, events: [], bytes: 0 }));
    open.events.push({ ...given, xml });
    open.bytes += xml.length;
    this.schedule();
  }

  #publish(open: Open): void {
    const { bus } = this.#options;
    const lasting = open.isAnswer ? [] : open.events.filter(({ isReport }) => !isReport);
    const events = bus.isUp ? open.events : lasting;
    if (events.length === 0) return;
    const first = this.#sequence + 1;
    const messages = this.#encoded(open, events, first);
    this.#sequence += messages.length;
    const targets = bus.isUp ? this.#targetsNow(open) : [];
    for (const message of messages) for (const subject of targets) bus.publish(subject, message);
    if (lasting.length === 0) return;
    const kept = lasting.length === events.length ? messages : this.#encoded(open, lasting, first);
    for (const [at, message] of kept.entries()) this.#keep({ subjects: open.subjects, message, sequence: first + at });
  }

  /** A large event goes to each node once, not once for each of its groups. */
  #targetsNow({ subjects: given, places = [], bytes }: Open): readonly string[] {
    if (bytes <= MAX_MESSAGE_BYTES || given.length === 1) return given;
    return this.#options.nodesOf(places).map((node) => subjects.node(node));
  }

  #encoded({ places, clients, isAnswer }: Target, events: readonly MeshEvent[], sequence: number): Buffer[] {
    const { node, now } = this.#options;
    const message = encodeBatch({ node, sequence, atMs: now().getTime(), places, clients, isAnswer, events });
    return message.length <= 2 * MAX_MESSAGE_BYTES ? [message] : splitMessage(node, sequence, message);
  }

  #keep(kept: Omit<Kept, 'atMs'>): void {
    const { maxKeptBytes = MAX_KEPT_BYTES, now } = this.#options;
    const { length } = kept.message;
    if (this.#newerBytes + length > maxKeptBytes / 2) {
      const { sequence, atMs } = this.#older.at(-1) ?? this.#forgotten;
      this.#forgotten = { sequence, atMs };
      this.#older = this.#newer;
      this.#newer = [];
      this.#newerBytes = 0;
    }
    const message = length >= OWN_BUFFER_BYTES ? kept.message : Buffer.allocUnsafeSlow(length);
    if (message !== kept.message) kept.message.copy(message);
    this.#newer.push({ ...kept, message, atMs: now().getTime() });
    this.#newerBytes += length;
  }
}
