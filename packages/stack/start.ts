// Starts an embedded stack, in this process or with a detached supervisor.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { isWildcardAddress, urlHost } from '@holdfast/kit/addresses';
import { argumentsOrUsage, failureText, type Invocation, say } from '@holdfast/kit/command';
import { counted } from '@holdfast/kit/format';
import { WEBADMIN } from '@holdfast/kit/names';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { RELEASE } from '@holdfast/kit/release';
import { describeProblem } from '../../shared/settings/setting.ts';
import { type EmbeddedPlan, planEmbedded } from './embedded-plan.ts';
import { installFlows } from './flows/install.ts';
import { FLOWS_USER } from './flows/process.ts';
import { makeDirectories } from './process/layout.ts';
import { processLog } from './process/process-log.ts';
import { type Message, messageProgress, terminalProgress } from './process/report.ts';
import { endRotations } from './secrets.ts';
import { parseStartArguments, START_USAGE } from './start-arguments.ts';

const DETACHED_VARIABLE = 'HOLDFAST_DETACHED';
const WITHOUT_CONTAINERS =
  'This program only starts the embedded stack: ./scripts/start.sh --embedded. For the stack in containers: ./scripts/setup.sh, then ./scripts/start.sh\n';

/** The program of start.sh; resolves with its exit code. */
export async function start(call: Invocation): Promise<number> {
  // A closed terminal or pipe must not stop the stack.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  process.exitCode = 1;
  const { home, environment } = call;
  forgetPostgresVariables(environment);
  const args = argumentsOrUsage(() => parseStartArguments(call), START_USAGE);
  if (typeof args === 'number') return args;
  if (!args.embedded) {
    say(WITHOUT_CONTAINERS);
    return 2;
  }
  // A detached supervisor is started after the restore, with the same arguments.
  if (args.restore !== undefined && environment[DETACHED_VARIABLE] !== '1') {
    const { restoreEmbedded } = await import('./backup/restore.ts');
    await restoreEmbedded(home, args.data, args.restore);
    // Set by start.sh for the restore alone.
    delete environment['MALLOC_ARENA_MAX'];
  }
  const plan = planEmbedded(home, args, environment);
  if (Array.isArray(plan)) {
    say(
      `Couldn't start Holdfast: ${counted(plan.length, 'invalid setting')}. Nothing was changed. Fix and start again:\n`,
    );
    for (const problem of plan) say(`  ${describeProblem(problem)}\n`);
    return 1;
  }
  if (environment[DETACHED_VARIABLE] === '1') return runDetached(plan);
  say(`Holdfast ${RELEASE}, embedded, data in ${plan.layout.root}\n`);
  if (plan.flows !== undefined) await installFlows(home, say);
  return args.detach ? launch(plan) : runHere(plan);
}

async function runHere(plan: EmbeddedPlan): Promise<number> {
  const begun = performance.now();
  const { superviseStack } = await import('./supervisor.ts');
  const supervision = superviseStack(plan, progressHere());
  try {
    await supervision.ready;
  } catch (error) {
    say(`\n${failureText(error)}`);
    return 1;
  }
  endRotations(plan.layout, say);
  say(summary(plan, begun, 'Ctrl-C'));
  const code = await supervision.ended;
  say('Holdfast has stopped.\n');
  return code;
}

/** The supervisor of a detached start. Stops if its launcher dies before the stack is ready. */
async function runDetached(plan: EmbeddedPlan): Promise<number> {
  delete process.env[DETACHED_VARIABLE];
  process.chdir(plan.layout.root);
  const send = (message: Message): void => {
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  };
  const { superviseStack } = await import('./supervisor.ts');
  const supervision = superviseStack(plan, messageProgress(send));
  const stopEarly = (): void => supervision.stop();
  process.once('disconnect', stopEarly);
  try {
    await supervision.ready;
  } catch (error) {
    await new Promise((sent) => {
      if (process.connected) process.send?.({ kind: 'failed', text: failureText(error) }, undefined, undefined, sent);
      else sent(null);
    });
    return 1;
  }
  process.off('disconnect', stopEarly);
  endRotations(plan.layout, (text) => send({ kind: 'warn', text: text.trim() }));
  send({ kind: 'ready' });
  return supervision.ended;
}

/** The launcher of a detached start. Shows the progress and returns when the stack is ready. */
async function launch(plan: EmbeddedPlan): Promise<number> {
  const begun = performance.now();
  makeDirectories(plan.layout);
  const child = spawnSupervisor(join(plan.layout.logs, 'supervisor.log'));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGTERM'));
  const progress = progressHere();
  let finishStep: (detail: string) => void = () => undefined;
  const outcome = await new Promise<'ready' | 'failed'>((resolveOutcome) => {
    child.on('message', (message: Message) => {
      if (message.kind === 'step') finishStep = progress.step(message.name);
      else if (message.kind === 'done') finishStep(message.detail);
      else if (message.kind === 'warn') progress.warn(message.text);
      else if (message.kind === 'ready') resolveOutcome('ready');
      else {
        say(`\n${message.text}`);
        resolveOutcome('failed');
      }
    });
    child.once('exit', (code, signal) => {
      say(
        `\nThe supervisor exited ${signal === null ? `with code ${code}` : `by signal ${signal}`}.\n  Remedy: read ${plan.layout.logs}/supervisor.log, then start again\n`,
      );
      resolveOutcome('failed');
    });
  });
  child.removeAllListeners('exit');
  if (outcome === 'failed') return 1;
  say(summary(plan, begun, `./scripts/stop.sh --data ${plan.layout.root}`));
  child.disconnect();
  child.unref();
  return 0;
}

function spawnSupervisor(logFile: string): ChildProcess {
  const options = { detached: true, env: { ...process.env, [DETACHED_VARIABLE]: '1' } } as const;
  return processLog(logFile).open((descriptor) =>
    spawn(process.execPath, process.argv.slice(1), { ...options, stdio: ['ignore', descriptor, descriptor, 'ipc'] }),
  );
}

function progressHere() {
  return terminalProgress(say, process.stderr.isTTY, () => performance.now());
}

function summary(plan: EmbeddedPlan, begun: number, stopWith: string): string {
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const network =
    plan.listen === undefined
      ? []
      : [
          `  Network      https://${urlHost(plan.listen)}:${plan.ports.api} and :${plan.ports.portal} (CA: ${plan.layout.core}/certs/files/ca.pem)`,
        ];
  const { core, enrollment, streaming } = plan.ports;
  const where = plan.addresses
    .map((address) => (isWildcardAddress(address) ? 'every address of this machine' : address))
    .join(' and ');
  return [
    `Holdfast is running (started in ${seconds} s).`,
    `  Console      ${plan.apiUrl}/`,
    `  Portal       ${plan.portalUrl}/`,
    `  API          ${plan.apiUrl}/api, documented at ${plan.apiUrl}/api/docs`,
    `  Devices      enroll on port ${enrollment}, stream on port ${streaming}, use the core's API on port ${core}, at ${where}`,
    ...network,
    ...(plan.flows === undefined ? [] : [`  Flows        ${plan.flows.url} as ${FLOWS_USER} (password: see Sign in)`]),
    `  Sign in      as ${WEBADMIN} (passwords and addresses: ${plan.layout.stack})`,
    `  Stop         ${stopWith}`,
    '',
  ].join('\n');
}
