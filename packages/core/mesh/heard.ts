// Keeps how far this node has heard each other one, and asks for what it has missed.

import { z } from 'zod';
import type { Bus } from './bus.ts';
import { Parts } from './messages.ts';
import { subjects } from './subjects.ts';

/** For the newest reports of these groups; with `after` for what was missed since that message. */
export const questionSchema = z.object({
  node: z.string(),
  places: z.array(z.int()),
  after: z.number().optional(),
  /** What is older is not missed: the node that asks has started then, since 1970. */
  sinceMs: z.number().default(0),
});

export interface HeardOptions {
  node: string;
  bus: Pick<Bus, 'publish'>;
  /** Places of the groups of this node's clients. */
  wanted: ReadonlySet<number>;
  /** Something was missed for good. */
  missed: () => void;
  now: () => Date;
  steadyMs: () => number;
}

/** What this node has of another one. */
interface Heard {
  run: string;
  /** Of its last message. */
  sequence: number;
  /** Of a large event. */
  parts: Parts;
  /** It may have said something that was missed: it is asked, and goes on after its answer. */
  isBehind: boolean;
  /** While no answer has come. */
  requestedMs: number | undefined;
}

const ASK_AGAIN_MS = 2_000;

export class HeardNodes {
  readonly #options: HeardOptions;
  readonly #startedMs: number;
  readonly #heard = new Map<string, Heard>();

  constructor(options: HeardOptions) {
    this.#options = options;
    this.#startedMs = options.now().getTime();
  }

  /**
   * With `wantsState` it was cut off itself. `isReplaced`: an earlier run of it has ended without
   * notice, with what it had still to tell.
   */
  joined(node: string, run: string, { wantsState, isReplaced }: { wantsState: boolean; isReplaced: boolean }): void {
    let heard = this.#heard.get(node);
    if (heard?.run !== run) {
      heard = { run, sequence: 0, parts: new Parts(), isBehind: true, requestedMs: undefined };
      this.#heard.set(node, heard);
    }
    if (isReplaced) this.#options.missed();
    if (wantsState) heard.isBehind = true;
    if (heard.isBehind) this.#askForMissed(node, heard);
    else this.askFor([...this.#options.wanted], subjects.node(node));
  }

  /** Any of them may have said something from now on that was missed. */
  cut(): void {
    for (const heard of this.#heard.values()) Object.assign(heard, { isBehind: true, requestedMs: undefined });
  }

  /** Asks again for what was missed. */
  look(): void {
    for (const [node, heard] of this.#heard) if (heard.isBehind) this.#askForMissed(node, heard);
  }

  /** It has said so much, and nothing of it was missed: the rest was for others. */
  reached(node: string, run: string, sequence: number): void {
    const heard = this.#heard.get(node);
    if (heard?.run === run && !heard.isBehind) heard.sequence = Math.max(heard.sequence, sequence);
  }

  /**
   * Counts a message. Undefined for one that was taken already, or is to come again by the replay;
   * else what came of a large event.
   */
  take({ node, sequence }: { node: string; sequence: number }, isReplay: boolean): Parts | undefined {
    const heard = this.#heard.get(node);
    if (heard === undefined || (heard.isBehind && !isReplay) || sequence <= heard.sequence) return undefined;
    heard.sequence = sequence;
    return heard.parts;
  }

  /** The end of a replay: what follows has greater numbers. */
  replayed({ node, upTo, isWhole }: { node: string; upTo: number; isWhole: boolean }): void {
    const heard = this.#heard.get(node);
    if (heard?.isBehind !== true) return;
    heard.isBehind = false;
    heard.requestedMs = undefined;
    heard.sequence = Math.max(heard.sequence, upTo);
    if (!isWhole) this.#options.missed();
    this.askFor([...this.#options.wanted], subjects.node(node));
  }

  /** For the newest reports of these groups. */
  askFor(places: readonly number[], subject: string): void {
    if (places.length === 0) return;
    const question = { node: this.#options.node, places };
    this.#options.bus.publish(subject, Buffer.from(JSON.stringify(question)));
  }

  #askForMissed(other: string, heard: Heard): void {
    const { node, bus, wanted, steadyMs } = this.#options;
    const atMs = steadyMs();
    if (heard.requestedMs !== undefined && atMs - heard.requestedMs < ASK_AGAIN_MS) return;
    heard.requestedMs = atMs;
    const question = { node, places: [...wanted], after: heard.sequence, sinceMs: this.#startedMs };
    bus.publish(subjects.node(other), Buffer.from(JSON.stringify(question)));
  }
}
