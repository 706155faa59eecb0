// The time and the flow tag that the server writes over events: one object for a whole second.

import type { Stamp } from './parts.ts';

const SECOND_MS = 1000;

/** `atMs` since 1970. */
export function stamps(nodeId: string): (atMs: number) => Stamp {
  const tag = `TAK-Server-${nodeId}`;
  let second = Number.NaN;
  let stamp: Stamp = { time: '', tag };
  return (atMs) => {
    const at = Math.floor(atMs / SECOND_MS);
    if (at !== second) {
      second = at;
      stamp = { time: new Date(at * SECOND_MS).toISOString().replace('.000Z', 'Z'), tag };
    }
    return stamp;
  };
}
