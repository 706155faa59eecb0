// Thins position reports while many clients are connected: receivers get the newest report of each
// uid, once in S seconds.

import type { ThinningRow } from '@holdfast/kit/core-wire';
import { SECOND_MS } from '@holdfast/kit/time';
import type { CotEvent, Delivery, Stamp } from '../model/stream.ts';
import { type Client, KeptEvent, type Redeliver } from './client.ts';
import { type Placed, placed } from './geo-filter.ts';

/**
 * N clients of one group cause N*N/S deliveries a second. Up to 4,999 clients each row keeps them
 * below 200,000, which fill 1 Gbit/s as XML; above, below what 1 Gbit/s carries as protobuf.
 */
export const AUTO_THINNING: readonly ThinningRow[] = [
  { clients: 500, seconds: 5 },
  { clients: 1_000, seconds: 12 },
  { clients: 1_500, seconds: 20 },
  { clients: 2_000, seconds: 45 },
  { clients: 3_000, seconds: 80 },
  { clients: 4_000, seconds: 125 },
  { clients: 5_000, seconds: 240 },
  { clients: 10_000, seconds: 480 },
];

/** S of the last row that so many clients reach; 0 below the first one. Rows in any order. */
export function thinningSeconds(rows: readonly ThinningRow[], clients: number): number {
  const reached = rows.filter((row) => row.clients <= clients).toSorted((a, b) => a.clients - b.clients);
  return reached.at(-1)?.seconds ?? 0;
}

export interface ThinningOptions {
  rows: readonly ThinningRow[];
  /** How many are connected, and the number of the newest connection. */
  clients: () => number;
  newest: () => number;
  /** To everyone who hears the sender now. `isOwn`: the position of the sender itself. */
  send: (held: KeptEvent, place: Placed, from: Client, isOwn: boolean) => void;
  redeliver: Redeliver;
  steadyMs: () => number;
}

export interface Report {
  event: CotEvent;
  delivery: Delivery;
  stamp: Stamp;
  from: Client;
  /** The sender has named where it is to go. */
  explicit: boolean;
}

/** Who gets it now. `isHeld`: the others get it later, if no newer one comes. */
export interface Admitted {
  now: readonly Client[];
  isHeld: boolean;
}

/** A uid of one sender, from a delivery on. */
interface Window {
  from: Client;
  uid: string;
  openedMs: number;
  /** Connections up to this number have had a report of it. */
  upTo: number;
  held: { event: KeptEvent; place: Placed; bytes: number } | undefined;
}

const MAX_WINDOWS = 65_536;
const MAX_HELD_BYTES = 64 * 1024 * 1024;
const MAX_REPORT_BYTES = 8 * 1024;
const MAX_UID_CHARACTERS = 256;
const LOOK_EVERY_MS = 250;
const NOBODY: readonly Client[] = [];
const DELETED = 't-x-d-d';

/** What goes beyond its memory is delivered at once. To be closed. */
export class Thinning {
  readonly #options: ThinningOptions;
  readonly #bySender = new Map<Client, Map<string, Window>>();
  /** In the order of their opening, which is the order in which they end. */
  readonly #windows = new Set<Window>();
  #heldBytes = 0;
  #held = 0;
  #replaced = 0;
  #timer: NodeJS.Timeout | undefined;
  #known = { clients: -1, seconds: 0 };

  constructor(options: ThinningOptions) {
    this.#options = options;
  }

  /** In force now; 0: each report is delivered at once. */
  get seconds(): number {
    const clients = this.#options.clients();
    if (clients !== this.#known.clients)
      this.#known = { clients, seconds: thinningSeconds(this.#options.rows, clients) };
    return this.#known.seconds;
  }

  state(): { seconds: number; held: number; replaced: number } {
    return { seconds: this.seconds, held: this.#held, replaced: this.#replaced };
  }

  /** Which of them get the event now. The others get the newest one when its time comes. */
  admit(report: Report, receivers: readonly Client[]): Admitted {
    if (this.#options.rows.length === 0) return { now: receivers, isHeld: false };
    const { event, from, delivery, explicit } = report;
    const window = this.#bySender.get(from)?.get(event.uid);
    const isLong = delivery.maxXmlBytes > MAX_REPORT_BYTES || event.uid.length > MAX_UID_CHARACTERS;
    if (explicit || this.seconds === 0 || isLong || !isReport(event, from)) {
      this.#overtake(event, from, window);
      return { now: receivers, isHeld: false };
    }
    if (window === undefined) {
      this.#open(from, event.uid);
      return { now: receivers, isHeld: false };
    }
    if (!this.#hold(window, report)) {
      this.#remove(window);
      return { now: receivers, isHeld: false };
    }
    const newest = this.#options.newest();
    if (window.upTo === newest) return { now: NOBODY, isHeld: true };
    const arrived = receivers.filter(({ number }) => number > window.upTo);
    window.upTo = newest;
    return { now: arrived, isHeld: true };
  }

  /** It is leaving: its last position tells where to search for it. */
  forget(client: Client): void {
    for (const window of this.#bySender.get(client)?.values() ?? []) {
      const { held, uid } = window;
      this.#remove(window);
      if (held !== undefined) this.#options.send(held.event, held.place, client, client.shown?.uid === uid);
    }
  }

  /** Delivers what is due. */
  release(): void {
    const nowMs = this.#options.steadyMs();
    const ms = this.seconds * SECOND_MS;
    for (const window of this.#windows) {
      if (nowMs - window.openedMs < ms) break;
      const { held } = window;
      if (held === undefined) {
        this.#remove(window);
        continue;
      }
      this.#drop(window);
      this.#windows.delete(window);
      this.#windows.add(window);
      window.openedMs = nowMs;
      window.upTo = this.#options.newest();
      const { from, uid } = window;
      this.#options.send(held.event, held.place, from, from.shown?.uid === uid);
    }
  }

  /** Drops what is held: when the server stops, nobody is told. */
  close(): void {
    for (const window of this.#windows) this.#remove(window);
  }

  /** It passes at once, or takes the uid away: an older report must not come after it. */
  #overtake(event: CotEvent, from: Client, window: Window | undefined): void {
    if (window !== undefined) this.#remove(window);
    if (event.type !== DELETED) return;
    const deleted = this.#bySender.get(from)?.get(event.detail('link')?.attribute('uid') ?? '');
    if (deleted !== undefined) this.#remove(deleted);
  }

  #open(from: Client, uid: string): void {
    if (this.#windows.size >= MAX_WINDOWS) return;
    const { steadyMs, newest } = this.#options;
    const window: Window = { from, uid, openedMs: steadyMs(), upTo: newest(), held: undefined };
    const own = this.#bySender.get(from) ?? new Map<string, Window>();
    this.#bySender.set(from, own.set(uid, window));
    this.#windows.add(window);
    this.#timer ??= setInterval(() => this.release(), LOOK_EVERY_MS).unref();
  }

  /** False when there is no memory for it. */
  #hold(window: Window, { event, delivery, stamp }: Report): boolean {
    const bytes = delivery.maxXmlBytes;
    if (this.#heldBytes - (window.held?.bytes ?? 0) + bytes > MAX_HELD_BYTES) return false;
    const kept = window.held?.event ?? new KeptEvent(this.#options.redeliver, MAX_REPORT_BYTES);
    if (this.#drop(window)) this.#replaced++;
    kept.keep(delivery, stamp);
    kept.settle();
    window.held = { event: kept, place: placed(event), bytes };
    this.#heldBytes += bytes;
    this.#held++;
    return true;
  }

  #drop(window: Window): boolean {
    if (window.held === undefined) return false;
    this.#heldBytes -= window.held.bytes;
    this.#held--;
    window.held = undefined;
    return true;
  }

  #remove(window: Window): void {
    this.#drop(window);
    this.#windows.delete(window);
    const own = this.#bySender.get(window.from);
    own?.delete(window.uid);
    if (own?.size === 0) this.#bySender.delete(window.from);
    if (this.#windows.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** The sender's own position, or one that a machine has measured. What a person marks is none. */
function isReport(event: CotEvent, { shown }: Client): boolean {
  if (!event.type.startsWith('a-') || event.detail('emergency') !== undefined) return false;
  return shown?.uid === event.uid || event.how.startsWith('m-');
}
