// The few password hashes that are made at once, and who waits for them: a flood of wrong passwords costs neither the
// memory of the process nor the turn of those who wait before it.

import { availableParallelism } from 'node:os';
import type { Urgency } from './roster.ts';

export interface HashLine {
  /**
   * Does the work when its turn comes. Undefined at once when so many wait already that its turn would never come, and when
   * it is not wanted any more by then.
   */
  run: <T>(urgency: Urgency, work: () => Promise<T>, wanted?: () => boolean) => Promise<T | undefined>;
  /** For tests and figures. */
  waiting: () => Record<Urgency, number>;
}

export interface HashLineOptions {
  /**
   * Pieces of work at once; default: one for each core. Each takes a thread of libuv's pool, which files and host names
   * share: the process starts with UV_THREADPOOL_SIZE well above it.
   */
  atOnce?: number;
  /** How many may wait, for each urgency: one full line does not fill the others. */
  mostWaiting?: Partial<Record<Urgency, number>>;
  /** How many times as long as its work took the place of a suspect stays empty afterwards: a flood takes a quarter of it. */
  suspectRest?: number;
}

const ORDER: readonly Urgency[] = ['vouched', 'proven', 'usual', 'suspect'];
const MOST_WAITING: Readonly<Record<Urgency, number>> = { vouched: 256, proven: 256, usual: 256, suspect: 256 };

/** Suspects never take the last place, unless there is only one, and leave theirs empty for a while. */
export function hashLine({
  atOnce = availableParallelism(),
  mostWaiting = {},
  suspectRest = 3,
}: HashLineOptions = {}): HashLine {
  const places = Math.max(1, atOnce);
  const suspectPlaces = Math.max(1, places - 1);
  const most = { ...MOST_WAITING, ...mostWaiting };
  const lines: Record<Urgency, (() => void)[]> = { vouched: [], proven: [], usual: [], suspect: [] };
  let running = 0;
  let suspectsRunning = 0;

  const hasPlaceFor = (urgency: Urgency): boolean =>
    running < places && (urgency !== 'suspect' || suspectsRunning < suspectPlaces);

  function take(urgency: Urgency): void {
    running += 1;
    if (urgency === 'suspect') suspectsRunning += 1;
  }

  function leave(urgency: Urgency, tookMs: number): void {
    running -= 1;
    if (urgency === 'suspect') afterRest(suspectRest * tookMs);
    beginNext();
  }

  function afterRest(ms: number): void {
    const end = (): void => {
      suspectsRunning -= 1;
      beginNext();
    };
    if (ms > 0) setTimeout(end, ms);
    else end();
  }

  function beginNext(): void {
    for (const each of ORDER) {
      if (!hasPlaceFor(each)) continue;
      const begin = lines[each].shift();
      if (begin === undefined) continue;
      take(each);
      begin();
      return;
    }
  }

  async function run<T>(urgency: Urgency, work: () => Promise<T>, wanted = () => true): Promise<T | undefined> {
    if (hasPlaceFor(urgency)) take(urgency);
    else if (lines[urgency].length >= most[urgency]) return undefined;
    else await new Promise<void>((begin) => lines[urgency].push(begin));
    const begunMs = performance.now();
    try {
      return wanted() ? await work() : undefined;
    } finally {
      leave(urgency, performance.now() - begunMs);
    }
  }

  return {
    run,
    waiting: () => ({
      vouched: lines.vouched.length,
      proven: lines.proven.length,
      usual: lines.usual.length,
      suspect: lines.suspect.length,
    }),
  };
}
