// Repeats emergencies to everybody who heard them, until they are cancelled.

import { nameKey } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import type { CotEvent, Delivery, ServerEvent } from '../model/stream.ts';
import { escapeXml, insideOf } from '../model/wire-text.ts';

export interface Repeated {
  uid: string;
  /** Of the emergency: `911 Alert`. */
  repeatType: string;
  cotType: string;
  activatedAt: Date;
  callsign: string;
  username: string;
  event: ServerEvent;
  places: readonly number[];
}

/** Somebody has begun or cancelled an emergency. */
export interface SeenEmergency {
  uid: string;
  username: string;
  /** Since 1970. */
  atMs: number;
  isCancelled: boolean;
}

export interface RepeaterOptions {
  send: (places: readonly number[], event: ServerEvent) => void;
  now: () => Date;
}

const CANCEL = 'b-a-o-can';
const STALE_MS = 15_000;
const DEFAULT_PERIOD_MS = 10_000;
export const PERIOD_MS = { least: 1_000, most: 3_600_000 } as const;
const MAX_REPEATED = 200;
const MAX_OF_ONE = 5;
const MAX_BYTES = 16_384;
/** Whoever has forgotten to cancel is not repeated for ever. */
const MAX_AGE_MS = DAY_MS;

/** In memory alone, as in a release: a restart ends all. To be closed. */
export class Repeater {
  readonly #options: RepeaterOptions;
  readonly #repeated = new Map<string, Repeated>();
  #periodMs = DEFAULT_PERIOD_MS;
  #timer: NodeJS.Timeout | undefined;
  /** An emergency was begun or cancelled here: no other node repeats it any more. */
  onSaw: (seen: SeenEmergency) => void = () => undefined;

  constructor(options: RepeaterOptions) {
    this.#options = options;
  }

  /** An event went out to those groups. Only who has begun it cancels it. */
  saw(event: CotEvent, delivery: Delivery, username: string, places: readonly number[]): void {
    if (!event.type.startsWith('b-a-') || places.length === 0) return;
    const emergency = event.detail('emergency');
    const isCancelled = event.type === CANCEL || emergency?.attribute('cancel')?.toLowerCase() === 'true';
    const known = this.#repeated.get(event.uid);
    if (known !== undefined && nameKey(known.username) !== nameKey(username)) return;
    if (isCancelled || (emergency !== undefined && known === undefined))
      this.onSaw({ uid: event.uid, username, atMs: this.#options.now().getTime(), isCancelled });
    if (isCancelled) this.#forget(event.uid);
    else if (emergency !== undefined && known === undefined && this.#hasRoomFor(username, delivery))
      this.#begin(event, emergency.attribute('type') ?? '', delivery, username, places);
  }

  /**
   * The same person has begun or cancelled it on another node. One that began here after that goes
   * on; of two that began in the same millisecond, the one on the first node.
   */
  sawElsewhere({ uid, username, atMs, isCancelled }: SeenEmergency, isFirst: boolean): void {
    const known = this.#repeated.get(uid);
    if (known === undefined || nameKey(known.username) !== nameKey(username)) return;
    const sinceMs = known.activatedAt.getTime();
    if (sinceMs < atMs || (sinceMs === atMs && (isCancelled || isFirst))) this.#forget(uid);
  }

  list(): Repeated[] {
    return [...this.#repeated.values()];
  }

  get periodMs(): number {
    return this.#periodMs;
  }

  set periodMs(ms: number) {
    this.#periodMs = ms;
    this.#stop();
    this.#start();
  }

  /** Tells everybody who heard it that it is over. False when there is none. */
  remove(uid: string): boolean {
    const known = this.#repeated.get(uid);
    if (known === undefined) return false;
    this.#forget(uid);
    const detail = `<emergency cancel="true">${escapeXml(known.callsign)}</emergency>`;
    this.#options.send(known.places, { ...known.event, type: CANCEL, detail });
    return true;
  }

  /** Sends each once more; called each period. */
  repeat(): void {
    const atMs = this.#options.now().getTime();
    for (const { uid, event, places, activatedAt } of this.#repeated.values()) {
      if (Math.abs(atMs - activatedAt.getTime()) > MAX_AGE_MS) this.#forget(uid);
      else this.#options.send(places, event);
    }
  }

  close(): void {
    this.#stop();
  }

  #hasRoomFor(username: string, { maxXmlBytes }: Delivery): boolean {
    if (this.#repeated.size >= MAX_REPEATED || maxXmlBytes > MAX_BYTES) return false;
    const own = this.list().filter((each) => nameKey(each.username) === nameKey(username));
    return own.length < MAX_OF_ONE;
  }

  #begin(event: CotEvent, repeatType: string, delivery: Delivery, username: string, places: readonly number[]): void {
    const { uid, type, how, point } = event;
    const detail = insideOf(delivery.detail());
    this.#repeated.set(uid, {
      uid,
      repeatType,
      cotType: type,
      activatedAt: this.#options.now(),
      callsign: event.detail('contact')?.attribute('callsign') ?? '',
      username,
      event: { uid, type, how, staleMs: STALE_MS, detail, point },
      places: [...places],
    });
    this.#start();
  }

  #forget(uid: string): void {
    this.#repeated.delete(uid);
    if (this.#repeated.size === 0) this.#stop();
  }

  #start(): void {
    if (this.#repeated.size > 0) this.#timer ??= setInterval(() => this.repeat(), this.#periodMs).unref();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
