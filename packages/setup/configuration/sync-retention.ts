// Writes the retention files from the settings before a core starts.

import { resolve } from 'node:path';
import { argumentsOrUsage, type Invocation, parseCommandLine } from '@holdfast/kit/command';
import { readEnvFile } from '@holdfast/stack/env-file-layer';
import { wantedRetention } from '../../../shared/health/wanted.ts';
import { retentionFiles } from '../../../shared/retention/files.ts';
import { environmentLayer, type Layer, loadSettings } from '../../../shared/settings/load.ts';
import { describeProblem, type Problem } from '../../../shared/settings/setting.ts';
import type { SettingName, Settings } from '../../../shared/settings/table.ts';

const USAGE = `Usage: node dist/sync-retention.js [--env FILE]

Writes COT_RETENTION_DAYS, GEOCHAT_RETENTION_DAYS and RETENTION_CRON to conf/retention in CORE_DATA_DIR, in the
unit of CORE_RETENTION_UNIT. Run it before the core starts.

  --env FILE         read settings from FILE instead of .env in the repository
  --help             show this help
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
    say("Couldn't write the retention files. Nothing was changed:");
    for (const problem of problems) say(`  ${describeProblem(problem)}`);
    return 1;
  }
  const { messages } = await retentionFiles(directory).sync(wantedRetention(settings));
  for (const sentence of messages) say(`${sentence}.`);
  if (messages.length === 0) say(`The retention files in ${directory} are up to date.`);
  return 0;
}

function readArguments({ argv, cwd }: Invocation): { env: string | undefined } | 'help' {
  const { values } = parseCommandLine({ args: argv, options: { env: { type: 'string' }, help: { type: 'boolean' } } });
  if (values.help === true) return 'help';
  return { env: values.env === undefined ? undefined : resolve(cwd, values.env) };
}

/** Reads only the settings that this program needs. */
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
      remedy: 'set CORE_DATA_DIR to the directory of the core files, which contains conf',
    });
  return { settings, problems: [...file.problems, ...found] };
}

function relevant({ source, values }: Layer): Layer {
  return { source, values: Object.fromEntries(NEEDED.map((name) => [name, values[name]])) };
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
