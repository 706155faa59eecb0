// Processes with alerts of their own over one database, each of which can be cut off from it, be slow, or lose answers.

import { randomUUID } from 'node:crypto';
import { AppError } from '@holdfast/kit/app-error';
import { type AlertJournal, alertJournal } from '../../shared/alerts/journal.ts';
import type { Alerts } from '../../shared/alerts/port.ts';
import type { AlertPolicy } from '../../shared/alerts/rules.ts';
import { AlertStore } from '../../shared/alerts/store.ts';
import type { AlertTable } from '../../shared/alerts/table.ts';
import { memoryLog } from '../http/fake-deps.ts';

/** How the database is for one process; may be changed at any time. */
export interface Line {
  /** `lost`: it works, and its answer does not arrive. */
  state: 'good' | 'cut' | 'lost';
}

export interface AlertProcess {
  alerts: Alerts;
  line: Line;
  log: ReturnType<typeof memoryLog>;
  /** Lets time pass for this process. */
  later: (ms: number) => void;
  /** Resolves when it can write nothing more: its writes to the journal have arrived, as those of a process that ended. */
  end: () => Promise<void>;
}

function over(line: Line, table: AlertTable): AlertTable {
  const unavailable = (): AppError => new AppError('unavailable', 'our own database does not answer');
  const methods = Object.entries(table).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      if (line.state === 'cut') throw unavailable();
      const value = await (method as (...each: unknown[]) => Promise<unknown>)(...args);
      if ((line.state as string) === 'lost') throw unavailable();
      return value;
    },
  ]);
  return Object.fromEntries(methods) as AlertTable;
}

export function alertProcess(table: AlertTable, policy: AlertPolicy, file?: string): AlertProcess {
  const line: Line = { state: 'good' };
  const log = memoryLog();
  let aheadMs = 0;
  let written: Promise<void> = Promise.resolve();
  const remembered = (journal: AlertJournal): AlertJournal => ({
    ...journal,
    save: (snapshot) => (written = journal.save(snapshot)),
  });
  const alerts = new AlertStore({
    table: over(line, table),
    reads: over(line, table),
    journal: file === undefined ? undefined : remembered(alertJournal(file, log)),
    policy,
    runner: randomUUID(),
    clock: { wallMs: () => Date.now() + aheadMs, steadyMs: () => performance.now() + aheadMs },
    log,
  });
  return { alerts, line, log, later: (ms) => (aheadMs += ms), end: () => written };
}
