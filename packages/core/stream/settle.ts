// A batch on its way into the database: tried again while the database takes nothing, and cut in halves when it refuses a row,
// until the row is found, or when it has failed a few times, since it may take too long as a whole.

import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';

export interface Settling<T> {
  /** `again`: an earlier try may have worked, and only its answer was lost. */
  write(batch: readonly T[], again: boolean): Promise<void>;
  stored(batch: readonly T[]): void;
  /** The database refuses this one; why, without what a client wrote. */
  refused(item: T, reason: string): void;
  /** It takes nothing at the moment. Resolves when it is time for another try; false when there will be none. */
  away(error: unknown): Promise<boolean>;
}

const TRIES_AS_A_WHOLE = 3;

/** False when there was no other try. */
export async function settle<T>(batch: readonly T[], to: Settling<T>, again = false): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      await to.write(batch, again || tries > 1);
    } catch (error) {
      if (!takesNothing(error)) return refused(batch, error, to);
      if (!(await to.away(error))) return false;
      if (tries >= TRIES_AS_A_WHOLE && batch.length > 1) return halves(batch, to);
      continue;
    }
    to.stored(batch);
    return true;
  }
}

async function refused<T>(batch: readonly T[], error: unknown, to: Settling<T>): Promise<boolean> {
  const [only] = batch;
  if (only !== undefined && batch.length === 1) to.refused(only, refusalOf(error));
  if (batch.length <= 1) return true;
  return halves(batch, to);
}

async function halves<T>(batch: readonly T[], to: Settling<T>): Promise<boolean> {
  const middle = batch.length >> 1;
  return (await settle(batch.slice(0, middle), to, true)) && (await settle(batch.slice(middle), to, true));
}

/**
 * Classes of PostgreSQL's codes that speak of the server and not of a row: connection, transaction, rights and tables,
 * resources, locks, operator, system. What is unknown counts as a row's fault, or it would hold up all others for ever.
 */
const OF_THE_SERVER = /^(08|25|28|3D|3F|40|42|53|55|57|58)[0-9A-Z]{3}$/;

export function takesNothing(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'unavailable' || error.code === 'upstream';
  return OF_THE_SERVER.test(codeOf(error) ?? '');
}

const LONGEST_REASON = 160;

/** PostgreSQL quotes values in its messages: they stay out of logs and alerts. */
function refusalOf(error: unknown): string {
  const text = messageOf(error).replaceAll(/"[^"]*"?/g, '"…"');
  const code = codeOf(error);
  return `${code === undefined ? '' : `${code}: `}${text}`.slice(0, LONGEST_REASON);
}
