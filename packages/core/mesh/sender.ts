// Collects the events of a turn for the other nodes and publishes them, one message for each set of
// groups. Keeps what the bus may not have taken, and sends it once the other nodes are back.

import type { Log } from '@holdfast/kit/log';
import type { Outgoing } from '../stream/outboxes.ts';
import type { Bus } from './bus.ts';
import { type Batch, encodeBatch, MAX_MESSAGE_BYTES, type MeshEvent, splitMessage } from './messages.ts';
import { subjects } from './subjects.ts';

export interface SenderOptions {
  node: string;
  bus: Bus;
  log: Log;
  now: () => Date;
  maxHeldBytes?: number;
}

export type Target = Pick<Batch, 'places' | 'clients' | 'isAnswer'> & { subjects: readonly string[] };

interface Open extends Target {
  events: MeshEvent[];
  bytes: number;
}

interface Held {
  subjects: readonly string[];
  message: Buffer;
  sequence: number;
}

const MAX_HELD_BYTES = 16 * 1024 * 1024;

export class Sender {
  readonly #options: SenderOptions;
  readonly #open = new Map<string, Open>();
  readonly #placeTargets = new WeakMap<readonly number[], { key: string; target: Target }>();
  #sequence = 0;
  #scheduled = false;
  #holding = true;
  /** Published, and not yet known to be taken by the bus. */
  #unconfirmed: Held[] = [];
  #held: Held[] = [];
  #heldBytes = 0;
  #dropped = 0;
  /** Called before the events of a turn go out. */
  onTurn: () => void = () => undefined;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Events that other nodes will not get, since the start. */
  get dropped(): number {
    return this.#dropped;
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

  /** Until `release`, events are kept, without position reports: newer ones follow. */
  hold(): void {
    this.#holding = true;
    for (const each of this.#unconfirmed.splice(0)) this.#keep(each);
  }

  /** In their order, with their numbers: whoever has them already passes over them. */
  release(): void {
    if (!this.#holding) return;
    this.#holding = false;
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const each of held) {
      this.#send(each);
      this.#unconfirmed.push(each);
    }
  }

  /** The bus has taken what was published before: returns the call that says so. */
  confirmable(): () => unknown {
    const upTo = this.#sequence;
    return () => (this.#unconfirmed = this.#unconfirmed.filter(({ sequence }) => sequence > upTo));
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
    const isLasting = !open.isAnswer && open.events.some(({ isReport }) => !isReport);
    if (this.#holding && !isLasting) return;
    const { node, now } = this.#options;
    const events = this.#holding ? open.events.filter(({ isReport }) => !isReport) : open.events;
    const { places, clients, isAnswer } = open;
    const batch = { node, sequence: ++this.#sequence, atMs: now().getTime(), places, clients, isAnswer, events };
    const message = encodeBatch(batch);
    const messages = message.length <= 2 * MAX_MESSAGE_BYTES ? [message] : splitMessage(node, this.#sequence, message);
    this.#sequence += messages.length - 1;
    for (const each of messages) {
      const sent = { subjects: open.subjects, message: each, sequence: this.#sequence };
      if (this.#holding) this.#keep(sent);
      else {
        this.#send(sent);
        if (isLasting) this.#unconfirmed.push(sent);
      }
    }
  }

  #send({ subjects: to, message }: Held): void {
    for (const subject of to) this.#options.bus.publish(subject, message);
  }

  #keep(held: Held): void {
    const { maxHeldBytes = MAX_HELD_BYTES, log } = this.#options;
    this.#held.push(held);
    this.#heldBytes += held.message.length;
    while (this.#heldBytes > maxHeldBytes) {
      this.#heldBytes -= this.#held.shift()?.message.length ?? 0;
      this.#dropped++;
      if (this.#dropped === 1) log.warn('mesh.dropped', { reason: 'the other nodes are unreachable for too long' });
    }
  }
}
