// What the stream reports of its clients: a line for who comes and who goes, so many in a minute, then counts; and once a minute
// what slow readers have missed.

import type { Log } from '@holdfast/kit/log';
import { oneLine, shortened } from '@holdfast/kit/text';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { Client } from './client.ts';

export type StreamHappening = 'connected' | 'disconnected' | 'refused' | 'failed';

export interface StreamEvents {
  happened(what: StreamHappening, who: StreamWho, reason?: string): void;
  /** Called often; writes the counts when a minute is over. `dropped` events since the start. */
  tick(dropped: number): void;
}

export type StreamWho = Pick<Client, 'username' | 'address'> & Partial<Pick<Client, 'number' | 'shown'>>;

const SLOW_READERS = 'slow readers have not taken them';
const LINES_PER_MINUTE = 60;
const SHOWN_CHARACTERS = 100;
const SHOWN_REASON = 300;

/** `steadyMs` counts milliseconds. */
export function createStreamEvents(log: Log, steadyMs: () => number): StreamEvents {
  let untold: Partial<Record<StreamHappening, number>> = {};
  let lines = 0;
  let since = steadyMs();
  let droppedBefore = 0;

  return {
    happened(what, { username, address, number, shown }, reason) {
      if (lines >= LINES_PER_MINUTE) {
        untold[what] = (untold[what] ?? 0) + 1;
        return;
      }
      lines++;
      log[what === 'failed' ? 'error' : 'info'](`stream.${what}`, {
        ...(number === undefined ? {} : { subscription: `tls:${number}` }),
        user: clean(username),
        address,
        ...(shown === undefined ? {} : { uid: clean(shown.uid), callsign: clean(shown.callsign) }),
        ...(reason === undefined ? {} : { reason: shortened(oneLine(reason), SHOWN_REASON) }),
      });
    },
    tick(dropped) {
      if (steadyMs() - since < MINUTE_MS) return;
      since = steadyMs();
      lines = 0;
      if (Object.keys(untold).length > 0) log.info('stream.more_in_this_minute', { ...untold });
      untold = {};
      if (dropped > droppedBefore)
        log.warn('stream.dropped', { events: dropped - droppedBefore, since_start: dropped, reason: SLOW_READERS });
      droppedBefore = dropped;
    },
  };
}

function clean(text: string): string {
  return shortened(oneLine(text), SHOWN_CHARACTERS);
}
