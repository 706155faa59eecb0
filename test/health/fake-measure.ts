// One measurement of a health module in a world of a test, with the thresholds as they ship.

import { healthModuleOf } from '../../shared/health/modules/index.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { DEFAULT_THRESHOLDS, type History } from '../../shared/settings/status.ts';
import { fakeMonitored, history, type World, world } from './fake-monitored.ts';

export async function measureIn(name: string, of: World, before: Partial<History> = {}): Promise<Measurement> {
  const module = healthModuleOf(name);
  if (module === undefined) throw new Error(name);
  return module.measure(fakeMonitored(of), DEFAULT_THRESHOLDS, history(before));
}

/** In a world where all is well but for the change. */
export function measure(name: string, change: (of: World) => void = () => undefined): Promise<Measurement> {
  const of = world();
  change(of);
  return measureIn(name, of);
}
