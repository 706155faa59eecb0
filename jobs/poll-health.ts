// Measures every due health module concurrently, stores the result and passes it to the alert
// engine. What another process has just measured is taken over, or of a local module counts beside
// the own measurement. Needs no database.

import { messageOf } from '@holdfast/kit/app-error';
import type { AlertEvaluation } from '../shared/alerts/port.ts';
import { healthModuleOf } from '../shared/health/modules/index.ts';
import type { Measurement } from '../shared/health/port.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { History, Status } from '../shared/settings/status.ts';

/** How often a process that is alone looks for others. */
const ALONE_SECONDS = 5;

/** Resolves after the slowest due module; a later run does not wait for it. */
export async function run(deps: Deps, now: Date): Promise<{ measured: string[] }> {
  if (now.getSeconds() % ALONE_SECONDS === 0 || !(await deps.health.isAlone()))
    await tellEngine(deps, await adoptOthers(deps));
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

/** The modules that the results of others concern. */
async function adoptOthers({ health, healthResults }: Deps): Promise<string[]> {
  const results = (await healthResults?.ofOthers()) ?? [];
  return results.length === 0 ? [] : health.adopt(results);
}

async function measureOne(deps: Deps, name: string): Promise<void> {
  const module = healthModuleOf(name);
  if (module === undefined) return;
  const measurement = await module.measure(deps.monitored, deps.thresholds, await historyOf(deps, name));
  const before = await deps.health.put(measurement);
  logChange(deps, measurement, before);
  await publish(deps, measurement);
  // Another process publishes before it tells the engine: a bad result is never missed here.
  const concerned = module.isLocal ? await adoptOthers(deps) : [];
  await tellEngine(deps, [name, ...concerned]);
}

async function publish({ health, healthResults }: Deps, measurement: Measurement): Promise<void> {
  if (healthResults === undefined) return;
  const state = await health.state(measurement.module);
  if (state === undefined) return;
  const { since, since_is_exact } = state;
  await healthResults.publish({ measurement, since, since_is_exact });
}

/** The first measurement after a start continues the history of the last process. */
async function historyOf({ health, alerts }: Deps, name: string): Promise<History> {
  return (await health.history(name)) ?? alerts.history(name);
}

/**
 * Passes every evaluation as it is shown, including good ones. The engine of each process follows,
 * for the time when the database does not answer.
 */
async function tellEngine(deps: Deps, modules: readonly string[]): Promise<void> {
  for (const name of new Set(modules)) {
    const { measurement = null } = (await deps.health.state(name)) ?? {};
    if (measurement !== null) await tellOne(deps, measurement);
  }
}

async function tellOne({ alerts, health, log, now }: Deps, measurement: Measurement): Promise<void> {
  const { module } = measurement;
  const isShared = healthModuleOf(module)?.isLocal === true && !(await health.isAlone());
  const observed = await alerts.observe({ ...evaluationOf(measurement), at: now().toISOString(), isShared });
  if (observed.kind === 'none') return;
  if (observed.kind === 'recovered') {
    log.info('alert.recovered', { module, from: observed.from });
    return;
  }
  const { id, level, message, reason } = observed.alert;
  if (observed.kind === 'raised') log.warn('alert.raised', { alert: id, module, level, message });
  else log.info('alert.suppressed', { alert: id, module, level, reason });
}

function evaluationOf(measurement: Measurement): Omit<AlertEvaluation, 'at'> {
  const { module, status, shouldAlert, message, details, remedies, failuresInRow, pollsInRow } = measurement;
  return { module, status, shouldAlert, message, details, remedies, failuresInRow, pollsInRow };
}

function logChange({ log }: Deps, { module: name, status, message }: Measurement, before: Status | undefined): void {
  if (before === status || (before === undefined && status === 'ok')) return;
  const fields = { module: name, from: before ?? null, to: status, message };
  if (status === 'ok' || status === 'note') log.info('health.changed', fields);
  else log.warn('health.changed', fields);
}
