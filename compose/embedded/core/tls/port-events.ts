// What a port reports of clients that it does not serve: the first of a minute one by one, then counts once a minute.
// Nobody can fill the log.

import { oneLine, shortened } from '../../../../shared/domain/plain-text.ts';
import type { Log } from '../../../../shared/ports/log.ts';

export type PortTrouble =
  | 'handshake failed'
  | 'certificate refused'
  | 'gave way'
  | 'turned away'
  | 'unreadable request'
  | 'failed';

export interface PortEvents {
  happened(trouble: PortTrouble, fields: { address: string; reason?: string }): void;
  /** Called often; writes the counts when a minute is over. */
  tick(): void;
}

const MINUTE_MS = 60_000;
const LINES_PER_MINUTE = 20;
const SHOWN_CHARACTERS = 200;

/** `name` is the port's, in every line; `now` counts milliseconds. */
export function createPortEvents(log: Log, name: string, now: () => number): PortEvents {
  let counts: Partial<Record<PortTrouble, number>> = {};
  let lines = 0;
  let since = now();

  return {
    happened(trouble, { address, reason }) {
      counts[trouble] = (counts[trouble] ?? 0) + 1;
      if (lines >= LINES_PER_MINUTE) return;
      lines++;
      const why = reason === undefined ? {} : { reason: shortened(oneLine(reason), SHOWN_CHARACTERS) };
      log[trouble === 'failed' ? 'error' : 'info'](`core.${trouble.replaceAll(' ', '_')}`, {
        port: name,
        address,
        ...why,
      });
    },
    tick() {
      if (now() - since < MINUTE_MS) return;
      since = now();
      lines = 0;
      if (Object.keys(counts).length > 0) log.info('core.minute', { port: name, ...counts });
      counts = {};
    },
  };
}
