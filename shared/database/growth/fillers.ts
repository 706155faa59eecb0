// Who fills the core's database: asked of the rows of a last while, in a bounded question that is not asked each time.

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
  /** Why they are not known. */
  problem: string | null;
}

/** With a pace: what came while it went on. */
export const PACE_SECONDS = 600;

const WITHIN_MS = 4_000;
/** Who could not answer is asked again soon. */
const PROBLEM_KEPT_MS = 120_000;
/** A UID or a type with less of it is nothing to name. */
const NAMED = 0.3;
/** Whoever sends less is any of many. */
const MENTIONED = 0.05;
/** Events that are less of the growth than this do not explain it. */
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

/** Whether that is mostly what grows. */
export function formatFillers({ fillers, problem }: SeenFillers, growthPerDay: number): string {
  if (fillers === null) return `who fills it is not known: ${problem}`;
  if (fillers.sampled === 0) return 'no event came in that time, so something else fills it';
  const perDay = (fillers.bytes / fillers.seconds) * (DAY_MS / 1000);
  const part = perDay / growthPerDay;
  const little = part < EXPLAINS ? `events are about ${percent(part)} of that; ` : '';
  return little + formatWho(fillers);
}

function formatWho({ uids, types }: Fillers): string {
  const [uid, type] = [uids[0], types[0]];
  if (uid !== undefined && uid.share >= NAMED) return `${formatUid(uid)} sends ${percent(uid.share)} of ${EVENTS}`;
  const ofType = type === undefined ? '' : `${percent(type.share)} of ${EVENTS} are ${type.name}`;
  if (uid === undefined) return ofType;
  const most = uid.share < MENTIONED ? '' : ` (${formatUid(uid)} sends most, ${percent(uid.share)})`;
  return `${ofType === '' ? '' : `${ofType}, `}no UID sends much more than the others${most}`;
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
