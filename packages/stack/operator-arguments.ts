// The command lines of prove.sh, unlock.sh and reset-password.sh, and where the management process is that they ask.

import { parseArgs, type ParseArgsConfig } from 'node:util';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { UsageError } from '@holdfast/kit/command';
import { askOperator, NobodyAnswers } from '@holdfast/kit/operator-socket';
import { directory } from './arguments.ts';
import { layoutOf } from './process/layout.ts';

export interface OperatorPlace {
  /** DATA_DIR of the management process. */
  directory: string;
  /** What to do when nobody answers there. */
  remedy: string;
}

type Options = NonNullable<ParseArgsConfig['options']>;

/** As `parseArgs`, with `--data` and `--help` besides; what cannot be understood is a UsageError. */
export function parseOperatorArguments(args: readonly string[], options: Options = {}) {
  try {
    const all = { ...options, data: { type: 'string' }, help: { type: 'boolean' } } as const;
    const { values, positionals } = parseArgs({ args: [...args], options: all, allowPositionals: true });
    return { values: values as Record<string, string | boolean | undefined>, positionals };
  } catch (error) {
    throw new UsageError(messageOf(error).split('. ')[0]);
  }
}

/** Of `--data DIR`; without it what DATA_DIR names (in the container), or data in the repository. */
export function operatorPlace(
  data: string | boolean | undefined,
  { home, cwd, environment }: { home: string; cwd: string; environment: NodeJS.ProcessEnv },
): OperatorPlace {
  const root = directory(data, home, cwd);
  const given = environment['DATA_DIR']?.trim() ?? '';
  if (data === undefined && given !== '')
    return {
      directory: given,
      remedy: 'start it with ./scripts/start.sh; docker compose logs --tail 20 management says what it lacks',
    };
  const layout = layoutOf(root);
  return {
    directory: layout.management,
    remedy: `start the stack (./scripts/start.sh --embedded --data ${layout.root}), or name the directory that it was started with, --data DIR, as the user that it runs as`,
  };
}

/** What the management process answers. */
export async function askManagement(
  { directory, remedy }: OperatorPlace,
  asked: object,
  withinMs: number,
): Promise<unknown> {
  try {
    return await askOperator(directory, asked, withinMs);
  } catch (error) {
    if (!(error instanceof NobodyAnswers)) throw error;
    throw new StackError(`No management process answers in ${directory} (${error.message}).`, remedy, error);
  }
}
