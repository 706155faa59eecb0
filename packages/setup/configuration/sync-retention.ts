// Writes the retention files before a core starts: what the settings ask for, or the reasons why it cannot be.

import { resolve } from 'node:path';
import { argumentsOrUsage, type Invocation, parseCommandLine } from '@holdfast/kit/command';
import { readEnvFile } from '@holdfast/stack/env-file-layer';
import { wantedRetention } from '../../../shared/health/wanted.ts';
import { retentionFiles } from '../../../shared/retention/files.ts';
import { environmentLayer, type Layer, loadSettings } from '../../../shared/settings/load.ts';
import { describeProblem, type Problem } from '../../../shared/settings/setting.ts';
import type { SettingName, Settings } from '../../../shared/settings/table.ts';

const USAGE = `Usage: node dist/sync-retention.js [--env FILE]

Writes COT_RETENTION_DAYS, GEOCHAT_RETENTION_DAYS and RETENTION_CRON into conf/retention of CORE_DATA_DIR, in what
CORE_RETENTION_UNIT says that the core counts. To be run before the core starts.

  --env FILE         read settings from FILE instead of .env in the repository
  --help             show this text
`;

const NEEDED: readonly SettingName[] = [
  'COT_RETENTION_DAYS',
  'GEOCHAT_RETENTION_DAYS',
  'RETENTION_CRON',
  'CORE_RETENTION_UNIT',
  'CORE_DATA_DIR',
];

/** The program; resolves with its exit code. */
export async function syncRetention(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const { settings, problems } = readSettings(call, args.env);
  const directory = settings.CORE_DATA_DIR;
  if (problems.length > 0 || directory === undefined) {
    say('The retention files were not touched:');
    for (const problem of problems) say(`  ${describeProblem(problem)}`);
    return 1;
  }
  const { messages } = await retentionFiles(directory).sync(wantedRetention(settings));
  for (const sentence of messages) say(`${sentence}.`);
  if (messages.length === 0) say(`The retention files in ${directory} are as they should be.`);
  return 0;
}

function readArguments({ argv, cwd }: Invocation): { env: string | undefined } | 'help' {
  const { values } = parseCommandLine({ args: argv, options: { env: { type: 'string' }, help: { type: 'boolean' } } });
  if (values.help === true) return 'help';
  return { env: values.env === undefined ? undefined : resolve(cwd, values.env) };
}

/** Whatever else is set or missing is for others to judge. */
function readSettings(
  { home, environment }: Invocation,
  env: string | undefined,
): { settings: Settings; problems: Problem[] } {
  const file = readEnvFile(home, env);
  const layers = [environmentLayer(environment), ...(file.layer === undefined ? [] : [file.layer])];
  const { settings, problems } = loadSettings(layers.map(relevant), 'container');
  const found = problems.filter(({ name }) => NEEDED.some((each) => each === name));
  if (settings.CORE_DATA_DIR === undefined && !found.some(({ name }) => name === 'CORE_DATA_DIR'))
    found.push({
      name: 'CORE_DATA_DIR',
      value: undefined,
      message: 'must be set',
      remedy: 'set CORE_DATA_DIR to the directory of the files of the core, in which conf lies',
    });
  return { settings, problems: [...file.problems, ...found] };
}

function relevant({ source, values }: Layer): Layer {
  return { source, values: Object.fromEntries(NEEDED.map((name) => [name, values[name]])) };
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
