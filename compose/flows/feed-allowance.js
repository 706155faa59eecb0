// Holds the events of a feed to its rate and its disk budget.

'use strict';

const MINUTE_MS = 60_000;
/**
 * Of a row in the history of the core, with its indexes. With the attributes of the event, at least
 * 800 bytes are counted beside the detail; 570 were measured.
 */
const ROW_BYTES = 500;
const MAX_WAITING = 5_000;

/**
 * Holds the events of one feed to its rate and its budget. Those that wait are the newest of their
 * uid, and keep their turn. `spent`: `{ day, bytes, refused }` of an earlier life.
 */
class Allowance {
  #waiting = new Map();
  #sentAt = [];
  #day;
  #bytes;
  refused;

  constructor({ day = '', bytes = 0, refused = 0 } = {}) {
    this.refused = refused;
    this.#day = day;
    this.#bytes = bytes;
  }

  get spent() {
    return { day: this.#day, bytes: this.#bytes };
  }

  offer(events) {
    for (const event of events) {
      if (!this.#waiting.has(event.uid) && this.#waiting.size >= MAX_WAITING) this.refused += 1;
      else this.#waiting.set(event.uid, event);
    }
  }

  /** The events that may go now. What the budget of the UTC day has no room for is refused. */
  take({ events_per_minute: perMinute, megabytes_per_day: megabytes }, nowMs) {
    const day = new Date(nowMs).toISOString().slice(0, 10);
    if (day !== this.#day) [this.#day, this.#bytes, this.refused] = [day, 0, 0];
    this.#sentAt = this.#sentAt.filter((ms) => nowMs - ms < MINUTE_MS && ms <= nowMs);
    const taken = [];
    for (const [uid, { xml, staleMs }] of this.#waiting) {
      if (this.#sentAt.length >= perMinute) break;
      this.#waiting.delete(uid);
      if (staleMs <= nowMs) continue;
      const bytes = Buffer.byteLength(xml) + ROW_BYTES;
      if (this.#bytes + bytes > megabytes * 1_000_000) {
        this.refused += 1;
        continue;
      }
      this.#bytes += bytes;
      this.#sentAt.push(nowMs);
      taken.push(xml);
    }
    return taken;
  }
}

module.exports = { Allowance };
