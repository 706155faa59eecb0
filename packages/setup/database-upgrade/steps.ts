// Runs the steps of an upgrade of PostgreSQL, for scripts/upgrade-database.sh. Each has the lock of
// the volume.

import { StackError } from '@holdfast/kit/app-error';
import { say } from '@holdfast/kit/command';
import { forgetKept, goBack } from './clusters.ts';
import { exportDatabase } from './export.ts';
import { importDatabase } from './import.ts';
import type { UpgradePlan } from './server.ts';

const STEPS: Record<string, (plan: UpgradePlan) => void | Promise<void>> = {
  export: exportDatabase,
  import: importDatabase,
  back({ directory, release }) {
    const major = release?.major ?? '';
    const outcome = goBack(directory, major);
    say(
      outcome === 'back'
        ? `The database is PostgreSQL ${major} again.\n`
        : `The database is PostgreSQL ${major} already.\n`,
    );
  },
  forget({ directory }) {
    const majors = forgetKept(directory);
    say(
      majors.length === 0
        ? 'No old cluster is kept.\n'
        : `Deleted the kept clusters of PostgreSQL ${majors.join(', ')}.\n`,
    );
  },
};

export const UPGRADE_STEPS = Object.keys(STEPS);

export function isUpgradeStep(step: string): boolean {
  return Object.hasOwn(STEPS, step);
}

/** Resolves with the exit code. */
export async function upgradeStep(step: string, plan: UpgradePlan): Promise<number> {
  if (plan.release === undefined) {
    say(
      `The step ${step} is only for the core's database of a release.\n  Remedy: set HOLDFAST_DATABASE_KIND=release\n`,
    );
    return 2;
  }
  try {
    await STEPS[step]?.(plan);
    return 0;
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    say(`${error.message}\n  Remedy: ${error.remedy}\n`);
    return 1;
  }
}
