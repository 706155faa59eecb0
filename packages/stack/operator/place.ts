// Where the management process is that the programs of an operator ask.

import { StackError } from '@holdfast/kit/app-error';
import type { Invocation } from '@holdfast/kit/command';
import { askOperator, NobodyAnswers } from '@holdfast/kit/operator-socket';
import { dataDirectory, layoutOf } from '../process/layout.ts';

export interface OperatorPlace {
  /** DATA_DIR of the management process. */
  directory: string;
  /** What to do when nobody answers there. */
  remedy: string;
}

/** Options that every such program has. */
export const OPERATOR_OPTIONS = { data: { type: 'string' }, help: { type: 'boolean' } } as const;

/** Of `--data DIR`; without it what DATA_DIR names (in the container), or data in the repository. */
export function operatorPlace(data: string | undefined, call: Invocation): OperatorPlace {
  const root = dataDirectory(data, call);
  const given = call.environment['DATA_DIR']?.trim() ?? '';
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
  request: object,
  withinMs: number,
): Promise<unknown> {
  try {
    return await askOperator(directory, request, withinMs);
  } catch (error) {
    if (!(error instanceof NobodyAnswers)) throw error;
    throw new StackError(`No management process answers in ${directory} (${error.message}).`, remedy, error);
  }
}
