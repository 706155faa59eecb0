// What the stream reports of its clients: a line for who comes and who goes, so many in a minute, then counts; and once a minute
// what slow readers have missed.

import type { Log } from '@holdfast/kit/log';
import { oneLine, shortened } from '@holdfast/kit/text';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { Client } from './client.ts';

export type StreamHappening = 'connected' | 'disconnected' | 'refused' | 'failed';

export type StreamWho = Pick<Client, 'username' | 'address'> & Partial<Pick<Client, 'number' | 'shown'>>;

const SLOW_READERS = 'slow readers have not taken them';
const LINES_PER_MINUTE = 60;
const SHOWN_CHARACTERS = 100;
const SHOWN_REASON = 300;

/** `steadyMs` counts milliseconds. */
export class StreamEvents {
  readonly #log: Log;
  readonly #steadyMs: () => number;
  #untold: Partial<Record<StreamHappening, number>> = {};
  #lines = 0;
  #since;
  #droppedBefore = 0;

  constructor(log: Log, steadyMs: () => number) {
    this.#log = log;
    this.#steadyMs = steadyMs;
    this.#since = steadyMs();
  }

  happened(what: StreamHappening, { username, address, number, shown }: StreamWho, reason?: string): void {
    if (this.#lines >= LINES_PER_MINUTE) {
      this.#untold[what] = (this.#untold[what] ?? 0) + 1;
      return;
    }
    this.#lines++;
    this.#log[what === 'failed' ? 'error' : 'info'](`stream.${what}`, {
      ...(number === undefined ? {} : { subscription: `tls:${number}` }),
      user: clean(username),
      address,
      ...(shown === undefined ? {} : { uid: clean(shown.uid), callsign: clean(shown.callsign) }),
      ...(reason === undefined ? {} : { reason: shortened(oneLine(reason), SHOWN_REASON) }),
    });
  }

  /** Called often; writes the counts when a minute is over. `dropped` events since the start. */
  tick(dropped: number): void {
    if (this.#steadyMs() - this.#since < MINUTE_MS) return;
    this.#since = this.#steadyMs();
    this.#lines = 0;
    if (Object.keys(this.#untold).length > 0) this.#log.info('stream.more_in_this_minute', { ...this.#untold });
    this.#untold = {};
    if (dropped > this.#droppedBefore)
      this.#log.warn('stream.dropped', {
        events: dropped - this.#droppedBefore,
        since_start: dropped,
        reason: SLOW_READERS,
      });
    this.#droppedBefore = dropped;
  }
}

function clean(text: string): string {
  return shortened(oneLine(text), SHOWN_CHARACTERS);
}
