// The table of the health modules. To add one: a file beside this one, a line here, its figures in
// the thresholds.

import type { HealthModule } from '../module.ts';
import { alerts } from './alerts.ts';
import { autovacuum } from './autovacuum.ts';
import { backup } from './backup.ts';
import { certificates } from './certificates.ts';
import { config } from './config.ts';
import { containers } from './containers.ts';
import { core } from './core.ts';
import { database } from './database.ts';
import { disk } from './disk.ts';
import { dns } from './dns.ts';
import { identity } from './identity.ts';
import { probe } from './probe.ts';
import { retention } from './retention.ts';
import { time } from './time.ts';
import { tls } from './tls.ts';
import { updates } from './updates.ts';

export const HEALTH_MODULES: readonly HealthModule[] = [
  database,
  autovacuum,
  retention,
  disk,
  certificates,
  tls,
  core,
  identity,
  probe,
  time,
  dns,
  containers,
  config,
  updates,
  backup,
  alerts,
];

/** The module of that name. */
export function healthModuleOf(name: string): HealthModule | undefined {
  return HEALTH_MODULES.find((module) => module.name === name);
}
