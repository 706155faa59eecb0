// What our image runs: `container.js ROLE`. Makes of the environment what a supervisor would hand over, takes every secret out of
// it, and goes on as the program of that role; the database becomes PostgreSQL itself.

import { say } from '@holdfast/kit/command';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { behaveAsFirst } from '@holdfast/kit/service';
import { supplyFlows } from '@holdfast/stack/flows/certificate';
import { describeProblem } from '../../../shared/settings/setting.ts';
import { become, LOCKED_VARIABLE, preparedServer, underLock } from './database.ts';
import { readPlaces } from './places.ts';
import { isRole, planContainer, ROLES, withoutOurs } from './plan.ts';
import { supplyProxy } from './proxy-certificate.ts';

/** The roles of a container; `load` goes on as a program beside this one. */
export async function runContainer(
  home: string,
  role: string,
  load: (program: string) => Promise<unknown>,
): Promise<void> {
  if (!isRole(role)) {
    say(`Holdfast has no role ${JSON.stringify(role)}: say one of ${Object.keys(ROLES).join(', ')}.\n`);
    process.exit(2);
  }
  behaveAsFirst(role);
  const given = { ...process.env };
  const plan = planContainer(home, role, given);
  if (Array.isArray(plan)) {
    const count = plan.length === 1 ? 'one setting' : `${plan.length} settings`;
    say(`Holdfast (${role}) does not start: ${count} must be put right. Nothing was started.\n`);
    for (const problem of plan) say(`  ${describeProblem(problem)}\n`);
    process.exit(1);
  }
  forgetOurs();
  if (plan.role === 'database') {
    const isLocked = given[LOCKED_VARIABLE] === '1';
    return become(isLocked ? await preparedServer(plan.database) : underLock(plan.database, given));
  }
  if (plan.proxy !== undefined) {
    supplyProxy(plan.proxy, (error) => sayNotGiven(role, 'proxy', error));
    // The flow engine is another user, in the group of this one besides.
    const flows = { core: plan.proxy.core, directory: readPlaces(given).places.flowsDirectory, mode: 0o640 };
    supplyFlows(flows, (error) => sayNotGiven(role, 'flows', error));
  }
  Object.assign(process.env, plan.environment);
  // No program reads a file of settings here: the environment was it.
  process.argv = [
    process.execPath,
    plan.program,
    ...(plan.program === 'sync-retention.js' ? ['--env', '/dev/null'] : []),
  ];
  await load(plan.program);
}

/** A child that this process starts, or a report of it, has nothing to tell. */
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
