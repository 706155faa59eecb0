// Measures every health module that is due, all at once and each for itself, and keeps what was found. Needs no database.

import { messageOf } from '../shared/domain/thrown.ts';
import type { Deps } from '../shared/http/deps.ts';
import { healthModuleOf } from '../shared/health/index.ts';

/** Ends when the slowest of the modules that were due has ended; a later run does not wait for it. */
export async function run(deps: Deps, now: Date): Promise<{ measured: string[] }> {
  const due = await deps.health.takeDue(now.getTime());
  await Promise.all(
    due.map((name) =>
      measureOne(deps, name).catch((error: unknown) => {
        deps.log.error('health.not_kept', { module: name, error: messageOf(error) });
      }),
    ),
  );
  return { measured: due };
}

async function measureOne(deps: Deps, name: string): Promise<void> {
  const module = healthModuleOf(name);
  if (module === undefined) return;
  const measurement = await module.measure(deps.monitored, deps.thresholds, await deps.health.history(name));
  const before = await deps.health.put(measurement);
  const { status, message } = measurement;
  if (before === status || (before === undefined && status === 'ok')) return;
  const fields = { module: name, from: before ?? null, to: status, message };
  if (status === 'ok' || status === 'note') deps.log.info('health.changed', fields);
  else deps.log.warn('health.changed', fields);
}
