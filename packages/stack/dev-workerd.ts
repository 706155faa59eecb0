// Runs the functions and jobs in workerd (npm run dev:workerd) against a running embedded stack.
// This process is the host: it listens, keeps the health cache, calls what a worker can't, and
// fires the crons.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { messageOf } from '@holdfast/kit/app-error';
import type { Invocation } from '@holdfast/kit/command';
import { type JsonLog, jsonLog } from '@holdfast/kit/log';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { JOBS } from '../../jobs/index.ts';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import type { RequestCounter } from '../../shared/host/request-statistics.ts';
import { withRequestLog } from '../../shared/http/request-log.ts';
import { minuteCron, startCrons } from '../../shared/jobs/crons.ts';
import { behindProxies } from '../../shared/runtime/client-address.ts';
import { hostBinding, portNames } from '../../shared/runtime/host-binding.ts';
import { type RunningWorker, startWorker } from '../../shared/runtime/miniflare-host.ts';
import { nodeDeps, ownTimeZone } from '../../shared/runtime/node-deps.ts';
import { serveApp } from '../../shared/runtime/node-server.ts';
import { readConfiguration } from '../../shared/settings/configuration.ts';
import { forWorkerd, HANDOVER_VARIABLE, readHandover } from '../../shared/settings/load.ts';
import { type EmbeddedPlan, planEmbedded } from './embedded-plan.ts';
import { parseStartArguments } from './start-arguments.ts';

const USAGE = `Usage: npm run dev:workerd -- [--data DIR] [--offset N] [--env FILE]

Serves console, portal and API from workerd, next to a running embedded stack. Each uses the stack's port
plus one. Use the same options as for the stack.
`;

/** Runs until it is stopped. Rejects if it can't start. */
export async function runDevWorkerd(call: Invocation): Promise<void> {
  const { home, environment } = call;
  const log = jsonLog({ role: 'dev-workerd' });
  forgetPostgresVariables(environment);
  const args = parseStartArguments(call);
  if (args === 'help') {
    process.stdout.write(USAGE);
    return;
  }
  const plan = planEmbedded(home, args, environment);
  if (Array.isArray(plan))
    throw new Error(`Some settings are invalid. Run ./scripts/start.sh --embedded to list them.`);
  await refuseWithoutStack(plan);
  const { worker, requests, proxies } = await startHost(home, plan, log);
  const [port, portal] = [plan.ports.api + 1, plan.ports.portal + 1];
  const server = await serveApp(
    behindProxies(
      withRequestLog(worker.fetch, log, () => performance.now(), requests),
      proxies,
    ),
    [
      { address: '127.0.0.1', port, face: 'console' },
      { address: '127.0.0.1', port: portal, face: 'portal' },
    ],
    log,
  );
  fireCrons(worker, log);
  process.stderr.write(
    `workerd is ready: http://127.0.0.1:${port} (console, API) and http://127.0.0.1:${portal} (portal). Ctrl-C stops it.\n`,
  );
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      void server.close(1000).then(async () => {
        await worker.end();
        log.flush();
        process.exit(0);
      });
    });
}

async function refuseWithoutStack({ layout, apiUrl }: EmbeddedPlan): Promise<void> {
  const runs =
    existsSync(layout.stack) &&
    (await fetch(`${apiUrl}/api/ping`, { signal: AbortSignal.timeout(10_000) }).then(
      ({ ok }) => ok,
      () => false,
    ));
  if (runs) return;
  throw new Error(
    `No running stack on ${apiUrl} for ${layout.root}. Start it first, with the same options: ./scripts/start.sh --embedded --detach --data ${layout.root}`,
  );
}

/** Makes Miniflare start workerd through a script that ties it to this process. */
function tieWorkerd(home: string): void {
  const { default: program } = createRequire(import.meta.url)('workerd') as { default: string };
  process.env['WORKERD'] = program;
  process.env['MINIFLARE_WORKERD_PATH'] = join(home, 'scripts/workerd.sh');
}

interface Host {
  worker: RunningWorker;
  requests: RequestCounter;
  proxies: readonly string[] | undefined;
}

async function startHost(home: string, plan: EmbeddedPlan, log: JsonLog): Promise<Host> {
  tieWorkerd(home);
  const files = join(plan.layout.core, 'certs/files');
  const certificates = {
    ca: join(files, 'ca.pem'),
    certificate: join(files, 'takserver.pem'),
    key: join(files, 'takserver.key'),
  };
  const handover = readHandover({ [HANDOVER_VARIABLE]: plan.managementEnvironment(certificates)[HANDOVER_VARIABLE] });
  const configuration = readConfiguration(home, handover.layers, handover.mode);
  const startedAt = new Date();
  const deps = nodeDeps({
    home,
    startedAt,
    configuration,
    handover,
    log,
    modules: HEALTH_MODULES,
    jobs: JOBS,
    minuteCrons: true,
    suffix: '-workerd',
  });
  const token = crypto.randomUUID();
  const worker = await startWorker({
    script: join(home, 'dist/worker.js'),
    ...compatibility(home),
    token,
    facts: {
      handover: forWorkerd(handover),
      startedAt: startedAt.toISOString(),
      nodeVersion: process.versions.node,
      timeZone: ownTimeZone(),
      thresholds: configuration.thresholds,
      ports: portNames(deps.hostPorts),
    },
    answerHost: hostBinding(deps.hostPorts, token),
  });
  return { worker, requests: deps.requests, proxies: configuration.settings.TRUSTED_PROXIES };
}

/** Reads the compatibility settings from wrangler.toml. */
function compatibility(home: string): { compatibilityDate: string; compatibilityFlags: string[] } {
  const text = readFileSync(join(home, 'wrangler.toml'), 'utf8');
  const member = (name: string): string => new RegExp(`^${name} = (.*)$`, 'm').exec(text)?.[1] ?? '""';
  return {
    compatibilityDate: JSON.parse(member('compatibility_date')) as string,
    compatibilityFlags: JSON.parse(member('compatibility_flags')) as string[],
  };
}

/** Fires each cron now and at its times, which Miniflare doesn't do. */
function fireCrons(worker: RunningWorker, log: JsonLog): void {
  const crons = [...new Set(JOBS.map((job) => minuteCron(job.cron)))];
  const fire = (cron: string, now: Date): void => {
    worker.scheduled(cron, now).catch((error: unknown) => log.error('cron.failed', { cron, error: messageOf(error) }));
  };
  for (const cron of crons) fire(cron, new Date());
  startCrons(crons, fire);
}
