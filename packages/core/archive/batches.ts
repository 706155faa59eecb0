// Writes batches to the database apart from the stream: bounded queue, pauses, retries.

import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';

export interface Settling<T> {
  /** `again`: an earlier try may have worked, and only its answer was lost. */
  write(batch: readonly T[], again: boolean): Promise<void>;
  stored(batch: readonly T[]): void;
  /** The database refuses this one; why, without what a client wrote. */
  refused(item: T, reason: string): void;
  /**
   * It takes nothing at the moment. Resolves when it is time for another try; false when there will
   * be none.
   */
  unavailable(error: unknown): Promise<boolean>;
}

const TRIES_AS_A_WHOLE = 3;

/**
 * Writes a batch: tried again while the database takes nothing, and cut in halves when it refuses a
 * row, until the row is found, or when it has failed a few times, since it may take too long as a
 * whole. False when there was no other try.
 */
export async function settle<T>(batch: readonly T[], to: Settling<T>, again = false): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      await to.write(batch, again || tries > 1);
    } catch (error) {
      if (!takesNothing(error)) return refused(batch, error, to);
      if (!(await to.unavailable(error))) return false;
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
 * Classes of PostgreSQL's codes that speak of the server and not of a row: connection, transaction,
 * rights and tables, resources, locks, operator, system. What is unknown counts as a row's fault,
 * or it would hold up all others for ever.
 */
const OF_THE_SERVER = /^(08|25|28|3D|3F|40|42|53|55|57|58)[0-9A-Z]{3}$/;

export function takesNothing(error: unknown): boolean {
  if (error instanceof AppError) return error.code === 'unavailable' || error.code === 'upstream';
  return OF_THE_SERVER.test(codeOf(error) ?? '');
}

const MAX_REASON_LENGTH = 160;

/** PostgreSQL quotes values in its messages: they stay out of logs and alerts. */
function refusalOf(error: unknown): string {
  const text = messageOf(error).replaceAll(/"[^"]*"?/g, '"…"');
  const code = codeOf(error);
  return `${code === undefined ? '' : `${code}: `}${text}`.slice(0, MAX_REASON_LENGTH);
}

/** So many places that are empty already are given back at once. */
const MAX_EMPTY = 4_096;

/**
 * A line of what waits to be stored, bounded by count and by characters: whoever has waited longest
 * gives way.
 */
export class WaitingLine<T extends { characters: number }> {
  #items: (T | undefined)[] = [];
  #first = 0;
  #characters = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  get characters(): number {
    return this.#characters;
  }

  add(item: T): void {
    this.#items.push(item);
    this.#characters += item.characters;
  }

  /**
   * From the front: at most `most`, and no more characters than that, but at least one when there
   * is any.
   */
  take(most: number, maxCharacters: number): T[] {
    const taken: T[] = [];
    let size = 0;
    while (taken.length < most) {
      const next = this.#items[this.#first];
      if (next === undefined || (taken.length > 0 && size + next.characters > maxCharacters)) break;
      size += next.characters;
      this.drop();
      taken.push(next);
    }
    return taken;
  }

  /** Takes the oldest out. */
  drop(): T | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#items[this.#first++] = undefined;
    this.#characters -= item.characters;
    if (this.#first === this.#items.length || (this.#first >= MAX_EMPTY && this.#first * 2 >= this.#items.length)) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}

/** Pauses that can be cut short. One pause at a time. */
export class Pauses {
  #end: (() => void) | undefined;

  after(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#end = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#end = done;
    });
  }

  /** Ends the pause that there is. */
  cutShort(): void {
    this.#end?.();
  }
}
