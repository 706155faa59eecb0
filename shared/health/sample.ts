// Samples the state of every health module once per slot of five minutes; two processes agree on
// the slot. It runs every minute, so that the first sample comes soon after a start, without
// database queries in between.

import { DAY_MS, slotStart } from '@holdfast/kit/time';
import type { HealthCache, HealthSample, HealthTrend, ModuleState, SampledModule } from './port.ts';

export const SAMPLE_SECONDS = 300;
const HOUR_SECONDS = 3600;

export interface SampleHealthDeps {
  health: Pick<HealthCache, 'states' | 'remember' | 'remembered'>;
  healthTrend: HealthTrend;
}

/**
 * Rejects if our own database is unavailable. `sampled` is false while modules are unmeasured, or
 * if the slot has one.
 */
export async function sampleHealth(
  { health, healthTrend }: SampleHealthDeps,
  now: Date,
): Promise<{ sampled: boolean; thinned: number }> {
  const known = (await health.remembered()) ?? (await readBack(health, healthTrend, now));
  const at = slotStart(now.getTime(), SAMPLE_SECONDS);
  const modules = sampledModules(await health.states());
  if (modules === undefined || known.some((sample) => sample.at === iso(at))) return { sampled: false, thinned: 0 };
  const sample: HealthSample = { at: iso(at), modules };
  await healthTrend.keep(sample);
  await health.remember([sample]);
  const isFirstOfHour = at === slotStart(at, HOUR_SECONDS);
  return { sampled: true, thinned: isFirstOfHour ? await healthTrend.thin(now.toISOString()) : 0 };
}

async function readBack(
  health: SampleHealthDeps['health'],
  healthTrend: HealthTrend,
  now: Date,
): Promise<HealthSample[]> {
  const earlier = (await healthTrend.read(iso(now.getTime() - DAY_MS))).filter(({ at }) => at <= now.toISOString());
  await health.remember(earlier);
  return earlier;
}

function sampledModules(states: readonly ModuleState[]): Record<string, SampledModule> | undefined {
  const sampled: Record<string, SampledModule> = {};
  for (const { module, measurement, since, since_is_exact } of states) {
    if (measurement === null || since === null) return undefined;
    sampled[module] = { status: measurement.status, since, since_is_exact, figure: measurement.figure ?? null };
  }
  return sampled;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
