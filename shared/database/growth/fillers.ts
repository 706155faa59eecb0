// Finds the senders that fill the core's database from recent rows, with a bounded, cached query.

import { messageOf } from '@holdfast/kit/app-error';
import { formatBytes } from '@holdfast/kit/format';
import { DAY_MS } from '@holdfast/kit/time';
import { withTimeout } from '@holdfast/kit/timeout';
import type { Filler, Fillers, GrowthFacts } from '../port.ts';

export interface FillersDeps {
  growthFacts: Pick<GrowthFacts, 'fillers'>;
  now: () => Date;
}

export interface SeenFillers {
  fillers: Fillers | null;
  /** Why they are unknown; null if they are known. */
  problem: string | null;
}

/** With a pace: the time that it covers. */
export const PACE_SECONDS = 600;

const WITHIN_MS = 4_000;
/** A failure is cached for a shorter time. */
const PROBLEM_KEPT_MS = 120_000;
/** A UID or type with a smaller share is not named. */
const NAMED = 0.3;
/** A sender with a smaller share is one of many. */
const MENTIONED = 0.05;
/** Events with a smaller share of the growth do not explain it. */
const EXPLAINS = 0.3;

const remembered = new WeakMap<object, Map<number, { atMs: number; seen: SeenFillers }>>();

/** Never rejects; the answer is at most that old. */
export async function seenFillers(deps: FillersDeps, seconds: number, keptMs: number): Promise<SeenFillers> {
  const { growthFacts, now } = deps;
  const nowMs = now().getTime();
  const memory = remembered.get(growthFacts) ?? new Map<number, { atMs: number; seen: SeenFillers }>();
  remembered.set(growthFacts, memory);
  const known = memory.get(seconds);
  const keeps = known?.seen.problem === null ? keptMs : Math.min(keptMs, PROBLEM_KEPT_MS);
  if (known !== undefined && nowMs >= known.atMs && nowMs - known.atMs < keeps) return known.seen;
  const seen = await withTimeout(WITHIN_MS, "The core's database", () => growthFacts.fillers(seconds)).then(
    (fillers): SeenFillers => ({ fillers, problem: null }),
    (error: unknown): SeenFillers => ({ fillers: null, problem: messageOf(error).replace(/\.$/, '') }),
  );
  memory.set(seconds, { atMs: nowMs, seen });
  return seen;
}

/** Names the largest sender or type, and says if events explain only a part of the growth. */
export function formatFillers({ fillers, problem }: SeenFillers, growthPerDay: number): string {
  if (fillers === null) return `largest senders unknown: ${problem}`;
  if (fillers.sampled === 0) return 'no events arrived in that time, so something else fills it';
  const perDay = (fillers.bytes / fillers.seconds) * (DAY_MS / 1000);
  const part = perDay / growthPerDay;
  const little = part < EXPLAINS ? `events are about ${percent(part)} of it; ` : '';
  return little + formatWho(fillers);
}

function formatWho({ uids, types }: Fillers): string {
  const [uid, type] = [uids[0], types[0]];
  if (uid !== undefined && uid.share >= NAMED) return `${formatUid(uid)} sends ${percent(uid.share)} of ${EVENTS}`;
  const ofType = type === undefined ? '' : `${percent(type.share)} of ${EVENTS} are ${type.name}`;
  if (uid === undefined) return ofType;
  const most = uid.share < MENTIONED ? '' : ` (${formatUid(uid)} sends most, ${percent(uid.share)})`;
  return `${ofType === '' ? '' : `${ofType}, `}no UID stands out${most}`;
}

const EVENTS = 'the bytes of events';

function formatUid({ name, cot_type: type, callsign }: Filler): string {
  const also = [type ?? undefined, callsign === null || callsign === undefined ? undefined : `callsign ${callsign}`];
  const known = also.filter((each) => each !== undefined);
  return `UID ${name}${known.length === 0 ? '' : ` (${known.join(', ')})`}`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** `1.2 GB a day`. */
export function formatGrowth(bytesPerDay: number): string {
  return `${formatBytes(Math.abs(bytesPerDay))} a day`;
}
