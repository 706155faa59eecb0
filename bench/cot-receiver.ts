// One connection of the load generator on its reading side: counts events by their marker, and
// hands out the number of each where it is asked to, also of one that a chunk cuts in two.

import { MARKER, NUMBER_DIGITS } from './cot-order.ts';

export interface Receiver {
  take: (chunk: Buffer) => void;
  /** Events whose marker has come. */
  readonly count: number;
}

/** Only counts. */
export function countingReceiver(counted: (events: number) => void): Receiver {
  let count = 0;
  return {
    get count() {
      return count;
    },
    take(chunk) {
      let found = 0;
      for (let at = chunk.indexOf(MARKER); at !== -1; at = chunk.indexOf(MARKER, at + 1)) found++;
      count += found;
      counted(found);
    },
  };
}

/** Reads the number of each event. */
export function numberReceiver(numbered: (value: number) => void): Receiver {
  let count = 0;
  let tail = '';
  return {
    get count() {
      return count;
    },
    take(chunk) {
      const text = tail + chunk.toString('latin1');
      tail = '';
      for (let at = text.indexOf('~'); at !== -1; at = text.indexOf('~', at + 1)) {
        const digits = text.slice(at + 1, at + 1 + NUMBER_DIGITS);
        if (digits.length < NUMBER_DIGITS) {
          tail = text.slice(at);
          return;
        }
        count++;
        numbered(Number(digits));
      }
    },
  };
}
