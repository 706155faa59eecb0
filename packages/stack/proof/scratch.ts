// A throw-away instance on the data of a backup: database, identity provider and core on free
// ports of 127.0.0.1. It has no management, so it runs no jobs and sends no alerts.

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { randomInt } from 'node:crypto';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { explainFileError, StackError } from '@holdfast/kit/app-error';
import { parseEnvFile } from '../../../shared/settings/load.ts';
import { clearStaleServer } from '../database/cluster.ts';
import { type EmbeddedPlan, planEmbedded } from '../embedded-plan.ts';
import { checkPorts } from '../preflight.ts';
import { type Guard, guardScript, takeLock } from '../process/guard.ts';
import { blockedPort, layoutOf, portsWithOffset } from '../process/layout.ts';
import type { Report } from '../process/report.ts';
import { GENERATED_NAMES } from '../secrets.ts';
import { type RunningStack, startStack } from '../stack.ts';

const TRIES = 50;
/** The guard of a killed proof ends its processes within this. */
const GUARD_WITHIN_MS = 10_000;

/**
 * One scratch instance of a stack at a time, by whichever program. Rejects with a StackError while
 * another one runs; release the guard at the end.
 */
export async function lockScratch(home: string, scratch: string): Promise<Guard> {
  const lock = join(dirname(scratch), 'run/proof.lock');
  // In containers the volume of backups has none yet.
  mkdirSync(dirname(lock), { recursive: true, mode: 0o700 });
  const guard = await takeLock(guardScript(home), lock, () => undefined);
  if (guard !== undefined) return guard;
  throw new StackError(
    'A proof of this stack is running, or another look into an archive.',
    'wait until it has ended, then run it again',
  );
}

/**
 * Ends and deletes what a killed proof left, whose own guard may still be ending its processes.
 * Call it with the lock.
 */
export async function removeScratch(scratch: string): Promise<void> {
  const until = performance.now() + GUARD_WITHIN_MS;
  for (;;) {
    await clearStaleServer(join(scratch, 'data/pgdata'));
    try {
      rmSync(scratch, { recursive: true, force: true });
      return;
    } catch (error) {
      if (performance.now() > until) throw explainFileError(error, scratch);
      await delay(200);
    }
  }
}

/** Makes the directory, which only the database's user may pass. */
export async function makeScratch(scratch: string): Promise<string> {
  await removeScratch(scratch);
  mkdirSync(scratch, { mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  return join(scratch, 'data');
}

/** Starts the restored data in `data`. Its passwords and keys are those of the archive. */
export async function startScratch(
  home: string,
  data: string,
  progress: (phase: string) => void,
  signal: AbortSignal,
): Promise<{ stack: RunningStack; plan: EmbeddedPlan }> {
  const plan = planEmbedded(
    home,
    {
      embedded: true,
      data,
      offset: await freeOffset(),
      detach: false,
      flows: false,
      listen: undefined,
      // Those of the archive could name databases and servers that are in use.
      env: '/dev/null',
    },
    keptSecretsOf(data),
  );
  if (Array.isArray(plan))
    throw new StackError(
      `The restored data can't be started: ${plan[0]?.name} ${plan[0]?.message}.`,
      'make a new backup, and see docs/backup.md',
    );
  const report: Report = {
    step(name) {
      progress(`Starting ${name}`);
      return () => undefined;
    },
    warn: () => undefined,
    event: () => undefined,
  };
  const services = { prepareRetention: async () => '', prepareState: async () => 0 };
  const stack = await startStack({ ...plan, isScratch: true }, services, report, signal, () => undefined);
  return { stack, plan };
}

/** Secrets that a person has set instead of the generated ones. */
function keptSecretsOf(data: string): Record<string, string> {
  const { env } = layoutOf(data);
  const { values } = existsSync(env) ? parseEnvFile(readFileSync(env, 'utf8')) : { values: {} };
  const set = GENERATED_NAMES.flatMap((name): [string, string][] => {
    const value: string | undefined = (values as Record<string, string | undefined>)[name];
    return value === undefined || value === '' ? [] : [[name, value]];
  });
  return Object.fromEntries(set);
}

/** Far from the ports that people give. */
async function freeOffset(): Promise<number> {
  let problem: unknown;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const offset = randomInt(20_000, 50_000);
    if (blockedPort(offset, { flows: true }) !== undefined) continue;
    const wanted = Object.entries(portsWithOffset(offset)).map(([purpose, port]) => ({
      address: '127.0.0.1',
      port,
      purpose,
    }));
    try {
      await checkPorts(wanted);
      return offset;
    } catch (error) {
      problem = error;
    }
  }
  throw problem;
}
