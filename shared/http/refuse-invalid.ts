// What a request lacks or has wrong, in words for whoever sent it: the validator speaks of its own types.

import { AppError } from '@holdfast/kit/app-error';

interface Issue {
  code?: string | undefined;
  path: PropertyKey[];
  message: string;
  /** Of a choice: what may be chosen. */
  values?: unknown[] | undefined;
}

type HookResult = { success: true } | { success: false; error: { issues: Issue[] } };

const KINDS: Record<string, string> = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a JSON object',
  null: 'null',
};

/** The hook of every route: throws `invalid` with all that is wrong. */
export function refuseInvalid(result: HookResult): void {
  if (result.success) return;
  const fields = result.error.issues.map((issue) => ({
    path: issue.path.map(String).join('.'),
    message: wordsOf(issue),
  }));
  const said = fields.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  throw new AppError('invalid', said.join('; '), { fields });
}

/** Words of our own stay; those of the validator become ours. */
function wordsOf({ code, path, message, values }: Issue): string {
  if (code === 'invalid_value' && message.startsWith('Invalid option') && values !== undefined)
    return `must be one of: ${values.join(', ')}`;
  const [, comparison = '', bound = ''] =
    /^Too (?:big|small): expected string to have ([<>]=)(\d+) characters$/.exec(message) ?? [];
  if (comparison === '>=') return bound === '1' ? 'must not be empty' : `must have at least ${bound} characters`;
  if (comparison === '<=') return `must have at most ${bound} characters`;
  const [, least] = /^Too small: expected (?:number|int) to be >=(-?\d+)$/.exec(message) ?? [];
  if (least !== undefined) return `must be ${least} or more`;
  const [, expected = '', received = ''] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? [];
  if (expected === '') return message;
  if (expected === 'int') return 'must be a whole number';
  const kind = KINDS[expected] ?? expected;
  if (received === 'undefined') return `is missing: give ${kind}`;
  if (expected === 'string' && received === 'array') return 'must be one text, not a list, nor be given several times';
  return `${path.length === 0 ? 'the body ' : ''}must be ${kind}, not ${KINDS[received] ?? received}`;
}
