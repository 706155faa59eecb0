// Describes the flow engine process (Node-RED with our settings) for the supervisor.
// Every flow can read its environment, so secrets are passed through a file descriptor.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { LISTENING } from '@holdfast/kit/service';
import { CORE_DATABASE, CORE_FLOWS } from '../database/roles.ts';
import type { Layout, Ports } from '../process/layout.ts';
import { processLog } from '../process/process-log.ts';
import { answersTo, type ProcessSpec } from '../process/supervised-process.ts';
import { flowsCertificateFiles } from './certificate.ts';
import { FLOWS_PLACE, FLOWS_PROGRAM } from './install.ts';

export interface FlowsPlan {
  /** Node-RED's own program, and the settings file. */
  program: string;
  settings: string;
  url: string;
  /** Readable by every flow. */
  environment: Record<string, string>;
  /** Password of the admin user. */
  password: string;
  /** Encrypts the credentials in flows. */
  credentialKey: string;
  /** Directory of its certificate. */
  certificate: string;
}

/** The descriptor after standard input and output and the supervisor's own channel. */
const SECRETS_DESCRIPTOR = 4;
/** Variables of the machine, not of the stack. */
const PASSED_ON = ['PATH', 'TZ', 'LANG', 'TMPDIR', 'SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS'];

export function flowsProcess(plan: FlowsPlan, layout: Layout, caFile: string): ProcessSpec {
  const log = processLog(join(layout.logs, 'flows.log'));
  const listening = new WeakSet<ChildProcess>();

  function start(): ChildProcess {
    const child = log.open((descriptor) =>
      spawn(process.execPath, [plan.program, '--settings', plan.settings, '--userDir', layout.flows], {
        cwd: layout.flows,
        env: {
          ...machine(),
          HOME: layout.flows,
          HOLDFAST_FLOWS_SECRETS: String(SECRETS_DESCRIPTOR),
          ...plan.environment,
        },
        detached: true,
        stdio: ['ignore', descriptor, descriptor, 'ipc', 'pipe'],
      }),
    );
    child.on('message', (message: { kind: string }) => {
      if (message.kind === LISTENING.kind) listening.add(child);
    });
    const secrets = child.stdio[SECRETS_DESCRIPTOR] as Writable | undefined;
    secrets?.on('error', () => undefined).end(['', plan.credentialKey, plan.password].join('\n'));
    return child;
  }

  return {
    role: 'flows',
    start,
    answers: async (child) => listening.has(child) && (await answersTo({ pingUrl: plan.url, caFile })),
    answersWithinMs: 120_000,
    stopSignal: 'SIGTERM',
    // Nodes may take up to 15 seconds to close.
    stopWithinMs: 20_000,
    lastWords: () => lastError(log.sinceOpened()),
  };
}

function machine(): Record<string, string> {
  const passedOn = PASSED_ON.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(passedOn.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** The last error in its log: a line of ours, or an uncaught error of Node. */
function lastError(text = ''): string | undefined {
  const lines = text.split('\n').filter((line) => /"level":"error"|Error: /.test(line));
  const last = lines.at(-1);
  return last === undefined ? undefined : (/"message":"((?:[^"\\]|\\.)*)"/.exec(last)?.[1] ?? last);
}

/** Username for signing in to the embedded flow engine. */
export const FLOWS_USER = 'admin';

export interface FlowsPasswords {
  database: string;
  signIn: string;
  credentialKey: string;
}

/** The flow engine's part of the plan, with --flows. */
export function flowsPlan(home: string, layout: Layout, ports: Ports, passwords: FlowsPasswords): FlowsPlan {
  const certificate = join(layout.flows, 'certificate');
  const files = flowsCertificateFiles(certificate);
  return {
    program: join(home, FLOWS_PROGRAM),
    settings: join(home, FLOWS_PLACE, 'settings.js'),
    url: `http://127.0.0.1:${ports.flows}/`,
    environment: {
      FLOWS_ADDRESS: '127.0.0.1',
      FLOWS_PORT: String(ports.flows),
      FLOWS_DIR: layout.flows,
      COT_HOST: '127.0.0.1',
      COT_PORT: String(ports.streaming),
      COT_SERVER_NAME: 'localhost',
      COT_CERTIFICATE: files.bundle,
      COT_CA: files.ca,
      PGHOST: '127.0.0.1',
      PGPORT: String(ports.database),
      PGDATABASE: CORE_DATABASE,
      PGUSER: CORE_FLOWS,
      PGPASSWORD: passwords.database,
    },
    password: passwords.signIn,
    credentialKey: passwords.credentialKey,
    certificate,
  };
}
