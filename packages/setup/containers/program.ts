// Runs a role of our image: `container.js ROLE`. Turns the environment into the handover of the
// role's program, removes our variables and secrets from it, and continues as that program
// (`database`: as PostgreSQL).

import { say } from '@holdfast/kit/command';
import { counted } from '@holdfast/kit/format';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { behaveAsFirst } from '@holdfast/kit/service';
import { supplyFlows } from '@holdfast/stack/flows/certificate';
import { describeProblem } from '../../../shared/settings/setting.ts';
import { become, LOCKED_VARIABLE, preparedServer, underLock } from './database.ts';
import { isUpgradeStep, UPGRADE_STEPS, upgradeStep } from '../database-upgrade/steps.ts';
import { readPlaces } from './places.ts';
import { isRole, planContainer, ROLES, withoutOurs } from './plan.ts';
import { supplyProxy } from './proxy-certificate.ts';

/**
 * Runs a role. `load` continues as the given program next to this one. `step`: of an upgrade of
 * PostgreSQL, in place of the server of the role `database`.
 */
export async function runContainer(
  home: string,
  role: string,
  load: (program: string) => Promise<unknown>,
  step?: string,
): Promise<void> {
  if (step !== undefined && (role !== 'database' || !isUpgradeStep(step))) {
    say(`Unknown step ${JSON.stringify(step)} of ${JSON.stringify(role)}. Use database ${UPGRADE_STEPS.join(', ')}.\n`);
    process.exit(2);
  }
  if (!isRole(role)) {
    say(`Unknown role ${JSON.stringify(role)}. Use one of ${Object.keys(ROLES).join(', ')}.\n`);
    process.exit(2);
  }
  behaveAsFirst(role);
  const given = { ...process.env };
  const plan = planContainer(home, role, given);
  if (Array.isArray(plan)) {
    say(`Couldn't start Holdfast (${role}): ${counted(plan.length, 'invalid setting')}. Nothing was started.\n`);
    for (const problem of plan) say(`  ${describeProblem(problem)}\n`);
    process.exit(1);
  }
  forgetOurs();
  if (plan.role === 'database') {
    if (given[LOCKED_VARIABLE] !== '1') return become(underLock(plan.database, given));
    if (step === undefined) return become(await preparedServer(plan.database));
    process.exit(await upgradeStep(step, plan.database));
  }
  if (plan.proxy !== undefined) {
    supplyProxy(plan.proxy, (error) => sayNotGiven(role, 'proxy', error));
    // The flow engine runs as another user, who is also in our group.
    const flows = { core: plan.proxy.core, directory: readPlaces(given).places.flowsDirectory, mode: 0o640 };
    supplyFlows(flows, (error) => sayNotGiven(role, 'flows', error));
  }
  Object.assign(process.env, plan.environment);
  // Programs must not read an env file: all settings come from the environment.
  process.argv = [
    process.execPath,
    plan.program,
    ...(plan.program === 'sync-retention.js' ? ['--env', '/dev/null'] : []),
  ];
  await load(plan.program);
}

/** Keeps our variables out of child processes and reports. */
function forgetOurs(): void {
  const kept = withoutOurs(process.env);
  for (const name of Object.keys(process.env)) if (!Object.hasOwn(kept, name)) delete process.env[name];
  forgetPostgresVariables(process.env);
}

function sayNotGiven(role: string, subject: string, error: string): void {
  const line = {
    time: new Date().toISOString(),
    level: 'warn',
    role,
    event: `${subject}.certificate_not_given`,
    error,
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
