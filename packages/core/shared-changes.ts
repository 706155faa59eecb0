// Tells the other nodes of a cluster what is changed on this one, at each change.

import type { Change } from './mesh/control.ts';
import type { Retention } from './model/parts.ts';
import type { Injectors } from './stream/injectors.ts';
import type { Repeater } from './stream/repeater.ts';

export class SharedChanges {
  readonly #tell: (change: Change) => void;

  constructor(tell: (change: Change) => void) {
    this.#tell = tell;
  }

  /** The node that runs retention plans anew. */
  retaining(retention: Retention): Retention {
    const changing = <A extends unknown[], R>(file: 'policy' | 'schedule' | 'archive', change: (...given: A) => R) => {
      return (...given: A): R => {
        const changed = change(...given);
        this.#tell({ changed: 'retention', file });
        return changed;
      };
    };
    return {
      ...retention,
      changePolicy: changing('policy', (given) => retention.changePolicy(given)),
      changeSchedule: changing('schedule', (text) => retention.changeSchedule(text)),
      changeArchive: changing('archive', (given) => retention.changeArchive(given)),
    };
  }

  /** The others read them from the database. */
  injecting(injectors: Pick<Injectors, 'replace'>): Pick<Injectors, 'replace'> {
    return {
      replace: (all) => {
        injectors.replace(all);
        this.#tell({ changed: 'injectors' });
      },
    };
  }

  /** Every node repeats emergencies as often. */
  repeating(repeater: Pick<Repeater, 'periodMs'>): Pick<Repeater, 'periodMs'> {
    const tell = (ms: number): void => this.#tell({ changed: 'period', ms });
    return {
      get periodMs() {
        return repeater.periodMs;
      },
      set periodMs(ms) {
        repeater.periodMs = ms;
        tell(ms);
      },
    };
  }
}
