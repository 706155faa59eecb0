// Replaces an event that is too large for a protobuf frame by a pointer to
// /Marti/api/cot/xml/{uid}, and keeps it for those who got the pointer.

import { createHash } from 'node:crypto';
import { nameKey } from '@holdfast/kit/names';
import { HOUR_MS } from '@holdfast/kit/time';
import { eventXml, type StoredEvent, XML_HEAD } from '../model/stored-event.ts';
import type { ServerEvent } from '../model/stream.ts';
import { fileShared } from './server-events.ts';

const KEPT_MS = HOUR_MS;
/** Of all together; beyond it the oldest go, and are only found where they are stored. */
const MAX_BYTES = 64 * 1024 * 1024;

export interface LargeEvent {
  /** As `/Marti/api/cot/xml/{uid}` answers: the hash of the pointer is that of these bytes. */
  xml: Uint8Array<ArrayBuffer>;
  receivedAtMs: number;
}

interface Kept extends LargeEvent {
  uid: string;
  hash: string;
  /** Keys of the names of those who got the pointer. */
  receivers: Set<string>;
}

export interface LargeEventsOptions {
  /** Of the API as devices reach it: `https://cot.example.org:8443`. */
  apiUrl: string;
  now: () => Date;
  maxBytes?: number;
}

export class LargeEvents {
  readonly #options: LargeEventsOptions;
  readonly #kept = new Map<string, Kept[]>();
  /** Oldest first. */
  readonly #order = new Set<Kept>();
  #bytes = 0;

  constructor(options: LargeEventsOptions) {
    this.#options = options;
  }

  /** What these people get instead of the event. `sender` is shown to them. */
  pointerTo(event: StoredEvent, receivers: Iterable<string>, sender: string): ServerEvent {
    const xml = new TextEncoder().encode(`${XML_HEAD}${eventXml(event)}`);
    const hash = createHash('sha256').update(xml).digest('hex');
    const kept = this.#keep(event.uid, hash, xml);
    for (const name of receivers) kept.receivers.add(nameKey(name));
    return fileShared({
      hash,
      name: `${event.uid}.cot`,
      filename: `${event.uid.replaceAll(/[^\w.-]/g, '_')}.cot`,
      url: `${this.#options.apiUrl}/Marti/api/cot/xml/${encodeURIComponent(event.uid.toWellFormed())}`,
      bytes: xml.length,
      senderUid: event.uid,
      sender,
    });
  }

  /** The newest of that uid to which this person got a pointer. */
  find(uid: string, username: string): LargeEvent | undefined {
    this.#dropOld(0);
    const key = nameKey(username);
    return this.#kept.get(uid)?.findLast(({ receivers }) => receivers.has(key));
  }

  #keep(uid: string, hash: string, xml: Uint8Array<ArrayBuffer>): Kept {
    const known = this.#kept.get(uid)?.find((each) => each.hash === hash);
    if (known !== undefined) return known;
    this.#dropOld(xml.length);
    const kept = { uid, hash, xml, receivedAtMs: this.#options.now().getTime(), receivers: new Set<string>() };
    this.#kept.set(uid, [...(this.#kept.get(uid) ?? []), kept]);
    this.#order.add(kept);
    this.#bytes += xml.length;
    return kept;
  }

  /** Makes room for so many bytes. */
  #dropOld(bytes: number): void {
    const { now, maxBytes = MAX_BYTES } = this.#options;
    const sinceMs = now().getTime() - KEPT_MS;
    for (const oldest of this.#order) {
      if (oldest.receivedAtMs > sinceMs && this.#bytes + bytes <= maxBytes) return;
      this.#order.delete(oldest);
      this.#bytes -= oldest.xml.length;
      const left = (this.#kept.get(oldest.uid) ?? []).filter((each) => each !== oldest);
      if (left.length === 0) this.#kept.delete(oldest.uid);
      else this.#kept.set(oldest.uid, left);
    }
  }
}
