// A module of health over a real server, and its remedies carried out as they stand.

import { freshConnections, keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import type { BareServer } from '../../packages/setup/test/bare-server.ts';
import { coreDatabase } from '../../shared/core/database/database.ts';
import { healthModuleOf } from '../../shared/health/modules/index.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import type { DatabaseTuning } from '../../shared/settings/tuning.ts';
import { fakeMonitored, history, world } from './fake-monitored.ts';

export type Measure = () => Promise<Measurement>;

/** `tuning`: what the settings ask for; default: the tuned values. */
export function measuring(name: 'database' | 'autovacuum', url: string, tuning?: DatabaseTuning): Measure {
  const around = world();
  if (tuning !== undefined) around.wanted.tuning = tuning;
  const options = { name: 'test', called: 'the database', variable: 'its URL' };
  const run = keptDatabase(new Secret(url), options);
  const runFresh = freshConnections(new Secret(url), options);
  const module = healthModuleOf(name);
  if (module === undefined) throw new Error(name);
  const monitored = { ...fakeMonitored(around), coreDatabase: coreDatabase({ run, runFresh }) };
  return () => module.measure(monitored, DEFAULT_THRESHOLDS, history());
}

const COMMAND = /\b(?:ALTER|CHECKPOINT|GRANT|ROLLBACK|SELECT|SET|VACUUM)\b[^;]*;/g;

/** Pastes every command of the first remedy, in one session of the superuser. */
export async function carryOut(server: BareServer, { remedies }: Measurement): Promise<void> {
  const commands = (remedies[0] ?? '').match(COMMAND) ?? [];
  if (commands.length === 0) throw new Error(`no command in: ${remedies.join('\n')}`);
  await server.ask(...commands);
}
