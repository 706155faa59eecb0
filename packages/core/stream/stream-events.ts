// Logs connections and disconnections: a limited number of lines per minute, then counts. Once per
// minute it logs what slow readers missed.

import { type Log, MinuteLimit } from '@holdfast/kit/log';
import { oneLine, shortened } from '@holdfast/kit/text';
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
  readonly #minute: MinuteLimit<StreamHappening>;
  #droppedBefore = 0;

  constructor(log: Log, steadyMs: () => number) {
    this.#log = log;
    this.#minute = new MinuteLimit(steadyMs, LINES_PER_MINUTE);
  }

  happened(what: StreamHappening, { username, address, number, shown }: StreamWho, reason?: string): void {
    if (!this.#minute.takeLine()) {
      this.#minute.count(what);
      return;
    }
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
    const more = this.#minute.nextMinute();
    if (more === undefined) return;
    if (Object.keys(more).length > 0) this.#log.info('stream.more_in_this_minute', more);
    const events = dropped - this.#droppedBefore;
    if (events > 0) this.#log.warn('stream.dropped', { events, since_start: dropped, reason: SLOW_READERS });
    this.#droppedBefore = dropped;
  }
}

function clean(text: string): string {
  return shortened(oneLine(text), SHOWN_CHARACTERS);
}
