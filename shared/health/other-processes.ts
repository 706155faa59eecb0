// Keeps what other processes measured of their own machines, and combines it with the own
// measurement: the worst counts. A process that falls silent no longer counts.

import { HOUR_MS } from '@holdfast/kit/time';
import { urgency } from '../settings/status.ts';
import { MAX_DETAILS } from './evaluate.ts';
import type { Measurement, Measurer, SharedResult } from './port.ts';

export interface OtherProcessesOptions {
  /** This process. */
  process: Measurer;
  /** The local modules. */
  local: readonly string[];
}

interface Result {
  process: Measurer;
  measurement: Measurement;
  publishedMs: number;
}

/** A process that falls silent is expected back for this long. */
const EXPECTED_FOR_MS = HOUR_MS;

export class OtherProcesses {
  readonly #options: OtherProcessesOptions;
  readonly #nowMs: () => number;
  /** After how long a measurement of a module no longer counts. */
  readonly #tooLongMs: (module: string) => number;
  /** By module and id of the process. */
  readonly #results: ReadonlyMap<string, Map<string, Result>>;
  /** When each process published last. */
  readonly #heardMs = new Map<string, number>();
  /** By module: how many results counted when they were combined last. */
  readonly #counted = new Map<string, number>();

  constructor(options: OtherProcessesOptions, nowMs: () => number, tooLongMs: (module: string) => number) {
    this.#options = options;
    this.#nowMs = nowMs;
    this.#tooLongMs = tooLongMs;
    this.#results = new Map(options.local.map((name) => [name, new Map<string, Result>()]));
  }

  /**
   * The local modules that a result concerns: its own, and after a silence of its process all
   * others too.
   */
  concerned({ process, measurement, ageMs }: SharedResult): string[] {
    const { module } = measurement;
    const publishedMs = this.#nowMs() - ageMs;
    const returned = this.#hear(process, publishedMs);
    const results = this.#results.get(module);
    if (results === undefined || publishedMs < (results.get(process.id)?.publishedMs ?? 0)) return returned;
    results.set(process.id, { process, measurement, publishedMs });
    return [...new Set([module, ...returned])];
  }

  #hear({ id }: Measurer, publishedMs: number): string[] {
    const wasSilent = this.#nowMs() >= this.#silentMs(id);
    this.#heardMs.set(id, Math.max(publishedMs, this.#heardMs.get(id) ?? 0));
    if (!wasSilent || this.#nowMs() >= this.#silentMs(id)) return [];
    return [...this.#results].flatMap(([name, results]) => (results.has(id) ? [name] : []));
  }

  /** Every process publishes the local module with the shortest interval. */
  #silentMs(id: string): number {
    const shortest = Math.min(...[...this.#results.keys()].map((name) => this.#tooLongMs(name)));
    return (this.#heardMs.get(id) ?? 0) + shortest;
  }

  /** True if none was heard within an hour. */
  areGone(): boolean {
    return [...this.#heardMs.values()].every((ms) => this.#nowMs() - ms >= EXPECTED_FOR_MS);
  }

  isLocal(module: string): boolean {
    return this.#results.has(module);
  }

  /** The worst of this measurement and those of the others. */
  combined(own: Measurement): Measurement {
    const { module } = own;
    const counting = this.#counting(module);
    this.#counted.set(module, counting.length);
    if (counting.length === 0) return own;
    return worstOf([{ process: this.#options.process, measurement: own }, ...counting]);
  }

  #counting(module: string): Result[] {
    const results = [...(this.#results.get(module)?.values() ?? [])];
    return results.filter((each) => this.#nowMs() < this.#countsUntilMs(each));
  }

  #countsUntilMs({ process: { id }, measurement: { module }, publishedMs }: Result): number {
    return Math.min(publishedMs + this.#tooLongMs(module), this.#silentMs(id));
  }

  /** The modules of which fewer results count than when they were combined. */
  fallenSilent(): string[] {
    return [...this.#counted].flatMap(([name, count]) => (this.#counting(name).length < count ? [name] : []));
  }

  /** When time alone makes one fall silent. */
  nextChangeMs(): number {
    const counting = [...this.#results.keys()].flatMap((name) => this.#counting(name));
    return Math.min(...counting.map((each) => this.#countsUntilMs(each)));
  }
}

type Named = Pick<Result, 'process' | 'measurement'>;

/** Every process gets the same from the same results, in any order. */
function worstOf(results: readonly Named[]): Measurement {
  const all = results.toSorted(worseFirst) as [Named, ...Named[]];
  const [{ process, measurement }] = all;
  return {
    ...measurement,
    message: `${process.name}: ${measurement.message}`,
    details: all
      .flatMap((each) => each.measurement.details.map((detail) => `${each.process.name}: ${detail}`))
      .slice(0, MAX_DETAILS),
    remedies: [...new Set(all.flatMap((each) => each.measurement.remedies))].slice(0, MAX_DETAILS),
    data: {
      ...measurement.data,
      processes: all.map(({ process: { name }, measurement: { status, message, updated_at } }) => ({
        name,
        status,
        message,
        updated_at,
      })),
    },
  };
}

function worseFirst(a: Named, b: Named): number {
  return (
    urgency(b.measurement.status) - urgency(a.measurement.status) ||
    Number(b.measurement.shouldAlert) - Number(a.measurement.shouldAlert) ||
    a.process.name.localeCompare(b.process.name, 'en') ||
    a.process.id.localeCompare(b.process.id, 'en')
  );
}
