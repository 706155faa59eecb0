// Sends all events of the stream: encodes an event once per form, and writes to each receiver once
// per turn.

import type { Delivery } from '../model/stream.ts';
import type { StoredEvent } from '../model/stored-event.ts';
import { Arena, Blocks } from './arena.ts';
import { type Form, Outbox, type OutboxLimits, type OutboxSocket, type OutboxState } from './outbox.ts';

/**
 * No bytes: it is not sent in that form. With `stored` it may be replaced by a pointer: undefined
 * when it cannot be read again.
 */
export interface Outgoing extends Pick<Delivery, 'maxXmlBytes' | 'writeXml' | 'protobuf'> {
  stored?(): StoredEvent | undefined;
}

export interface Receiver {
  readonly outbox: Outbox;
  readonly username: string;
}

/** Header and message of what these people get instead of an event that is too large. */
export type Replacement = (event: StoredEvent, receivers: Iterable<string>, sender: string | undefined) => Buffer;

/** ATAK has no room for a longer one, and drops it without a word. */
export const MAX_FRAME_BYTES: number = 64 * 1024;

const FORMS = ['xml', 'protobuf'] as const;

/** `steadyMs` counts milliseconds and never goes back. */
export class Outboxes {
  readonly #limits: OutboxLimits;
  readonly #steadyMs: () => number;
  readonly #replacement: Replacement;
  readonly state: OutboxState;
  readonly #blocks = new Blocks();
  readonly #arenas: Record<Form, Arena>;
  #dirty: Outbox[] = [];
  #scheduled = false;
  readonly #flushTurn = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  constructor(limits: OutboxLimits, steadyMs: () => number, replacement: Replacement) {
    this.#limits = limits;
    this.#replacement = replacement;
    this.#steadyMs = steadyMs;
    this.state = {
      atMs: steadyMs(),
      waitingBytes: 0,
      lagging: 0,
      delivered: 0,
      bytesWritten: 0,
      dropped: 0,
      open: 0,
    };
    this.#arenas = { xml: new Arena(this.#blocks), protobuf: new Arena(this.#blocks) };
  }

  open(socket: OutboxSocket): Outbox {
    return new Outbox(socket, this.state, this.#limits, this.#blocks);
  }

  /**
   * To each of them but `except`. Nobody may be named twice. One form after the other: to place an
   * event may write the turn out, and then no range of before counts any more.
   */
  send<T extends Receiver>(event: Outgoing, to: readonly T[], except?: T): void {
    for (const form of FORMS) {
      let [from, end] = [-1, -1];
      for (const receiver of to) {
        const { outbox } = receiver;
        if (outbox.form !== form || receiver === except) continue;
        if (from < 0) {
          from = form === 'xml' ? this.#placeXml(event) : this.#placeProtobuf(event, to, except);
          ({ end } = this.#arenas[form]);
        }
        if (end > from && outbox.add(from, end)) this.#noted(outbox);
      }
    }
  }

  /** What was sent before still goes in the form of before. */
  changeForm(outbox: Outbox, form: Form): void {
    outbox.flush(this.#arenas[outbox.form]);
    outbox.form = form;
  }

  /** Takes in what time it is; to be called each second. */
  look(): void {
    this.state.atMs = this.#steadyMs();
  }

  #flush(): void {
    this.state.atMs = this.#steadyMs();
    const waiting = this.#dirty;
    this.#dirty = [];
    for (const outbox of waiting) outbox.flush(this.#arenas[outbox.form]);
    this.#arenas.xml.turned();
    this.#arenas.protobuf.turned();
  }

  #noted(outbox: Outbox): void {
    this.#dirty.push(outbox);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flushTurn);
  }

  /** An arena that is full is written out before the next event begins. */
  #place(form: Form, bytes: number, write: (target: Buffer, at: number) => number): number {
    const arena = this.#arenas[form];
    if (!arena.hasRoom(bytes)) {
      if (this.#dirty.length > 0) this.#flush();
      arena.renew(bytes);
    }
    return arena.place(write);
  }

  #placeXml(event: Outgoing): number {
    return this.#place('xml', event.maxXmlBytes, (target, at) => event.writeXml(target, at));
  }

  #placeProtobuf<T extends Receiver>(event: Outgoing, to: readonly T[], except: T | undefined): number {
    let bytes = event.protobuf();
    if (bytes.length > MAX_FRAME_BYTES) {
      const stored = event.stored?.();
      const receivers = to.filter((each) => each.outbox.form === 'protobuf' && each !== except);
      const names = receivers.map(({ username }) => username);
      if (stored !== undefined) bytes = this.#replacement(stored, names, except?.username);
    }
    return this.#place('protobuf', bytes.length, (target, at) => at + bytes.copy(target, at));
  }
}
