// All that goes out of the stream: an event is written once in each form, and each receiver once in each turn of the event loop.

import type { Delivery } from '../model/stream.ts';
import { Arena, Blocks } from './arena.ts';
import { type Form, Outbox, type OutboxLimits, type OutboxSocket, type OutboxState } from './outbox.ts';

/** No bytes: it is not sent in that form. */
export type Outgoing = Pick<Delivery, 'mostXmlBytes' | 'writeXml' | 'protobuf'>;

export interface Receiver {
  readonly outbox: Outbox;
}

export interface Outboxes {
  readonly state: Readonly<OutboxState>;
  open(socket: OutboxSocket): Outbox;
  /** To each of them but `except`. Nobody may be named twice. */
  send<T extends Receiver>(event: Outgoing, to: readonly T[], except?: T): void;
  /** What was sent before still goes in the form of before. */
  changeForm(outbox: Outbox, form: Form): void;
  /** Takes in what time it is; to be called each second. */
  look(): void;
}

const FORMS = ['xml', 'protobuf'] as const;

/** `steadyMs` counts milliseconds and never goes back. */
export function createOutboxes(limits: OutboxLimits, steadyMs: () => number): Outboxes {
  const state: OutboxState = {
    atMs: steadyMs(),
    waitingBytes: 0,
    lagging: 0,
    delivered: 0,
    bytesWritten: 0,
    dropped: 0,
    open: 0,
  };
  const blocks = new Blocks();
  const arenas: Record<Form, Arena> = { xml: new Arena(blocks), protobuf: new Arena(blocks) };
  let dirty: Outbox[] = [];
  let scheduled = false;

  function flush(): void {
    state.atMs = steadyMs();
    const waiting = dirty;
    dirty = [];
    for (const outbox of waiting) outbox.flush(arenas[outbox.form]);
    arenas.xml.turned();
    arenas.protobuf.turned();
  }

  function flushTurn(): void {
    scheduled = false;
    flush();
  }

  function noted(outbox: Outbox): void {
    dirty.push(outbox);
    if (scheduled) return;
    scheduled = true;
    setImmediate(flushTurn);
  }

  /** An arena that is full is written out before the next event begins. */
  function place(form: Form, bytes: number, write: (target: Buffer, at: number) => number): number {
    const arena = arenas[form];
    if (!arena.hasRoom(bytes)) {
      if (dirty.length > 0) flush();
      arena.renew(bytes);
    }
    return arena.place(write);
  }

  function placeXml(event: Outgoing): number {
    return place('xml', event.mostXmlBytes, (target, at) => event.writeXml(target, at));
  }

  function placeProtobuf(event: Outgoing): number {
    const bytes = event.protobuf();
    return place('protobuf', bytes.length, (target, at) => at + bytes.copy(target, at));
  }

  return {
    state,
    open: (socket) => new Outbox(socket, state, limits, blocks),

    // One form after the other: to place an event may write the turn out, and then no range of before counts any more.
    send(event, to, except) {
      for (const form of FORMS) {
        let [from, end] = [-1, -1];
        for (const receiver of to) {
          const { outbox } = receiver;
          if (outbox.form !== form || receiver === except) continue;
          if (from < 0) {
            from = form === 'xml' ? placeXml(event) : placeProtobuf(event);
            ({ end } = arenas[form]);
          }
          if (end > from && outbox.add(from, end)) noted(outbox);
        }
      }
    },

    changeForm(outbox, form) {
      outbox.flush(arenas[outbox.form]);
      outbox.form = form;
    },

    look() {
      state.atMs = steadyMs();
    },
  };
}
