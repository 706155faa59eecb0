// Finds the management process for the operator programs, and sends it their requests.

import { StackError } from '@holdfast/kit/app-error';
import type { Invocation } from '@holdfast/kit/command';
import { askOperator, NobodyAnswers } from '@holdfast/kit/operator-socket';
import { dataDirectory, layoutOf } from '../process/layout.ts';

export interface OperatorPlace {
  /** DATA_DIR of the management process. */
  directory: string;
  /** What to do if management doesn't respond. */
  remedy: string;
}

/** Options of every operator program. */
export const OPERATOR_OPTIONS = { data: { type: 'string' }, help: { type: 'boolean' } } as const;

/** From `--data DIR`, else DATA_DIR (in the container), else data in the repository. */
export function operatorPlace(data: string | undefined, call: Invocation): OperatorPlace {
  const root = dataDirectory(data, call);
  const given = call.environment['DATA_DIR']?.trim() ?? '';
  if (data === undefined && given !== '')
    return {
      directory: given,
      remedy: 'start it with ./scripts/start.sh. To see why it stopped: docker compose logs --tail 20 management',
    };
  const layout = layoutOf(root);
  return {
    directory: layout.management,
    remedy: `start the stack (./scripts/start.sh --embedded --data ${layout.root}), or give its data directory with --data DIR. Run this as the user that the stack runs as`,
  };
}

/** Sends a request to the management process. Throws a StackError if it doesn't respond. */
export async function askManagement(
  { directory, remedy }: OperatorPlace,
  request: object,
  withinMs: number,
): Promise<unknown> {
  try {
    return await askOperator(directory, request, withinMs);
  } catch (error) {
    if (!(error instanceof NobodyAnswers)) throw error;
    throw new StackError(`Couldn't reach management in ${directory} (${error.message}).`, remedy, error);
  }
}
