// Rotates the generated secrets of a stopped embedded stack. The next start applies them, and
// deletes the old ones once it works.

import { accessSync, constants, existsSync } from 'node:fs';
import { StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { writeFileAtomically } from '@holdfast/kit/files';
import { readEnvFile } from '../env-file-layer.ts';
import { dataDirectory, type Layout, layoutOf } from '../process/layout.ts';
import { whileStopped } from '../process/ownership.ts';
import { BEFORE_ROTATION, generatePassword, keptSecrets, NEVER_ROTATED, ROTATED } from '../secrets.ts';
import { OPERATOR_OPTIONS } from './place.ts';

interface RotateArguments {
  data: string;
  /** Empty: all generated secrets. */
  names: string[];
}

const USAGE = `Usage: ./scripts/rotate-secrets.sh --data DIR [NAME...]

Gives new random values to the named secrets of a stopped embedded stack, or to all that it generated.

  --data DIR    data directory of the stack (default: data in the repository)
  --help        show this help
`;

/** The program of rotate-secrets.sh for an embedded stack; resolves with its exit code. */
export async function rotateSecrets(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const layout = layoutOf(args.data);
  if (!existsSync(layout.secrets))
    throw new StackError(
      `No embedded stack in ${args.data}: ${layout.secrets} is missing.`,
      'give the data directory of the stack with --data DIR',
    );
  accessSync(layout.secrets, constants.R_OK | constants.W_OK);
  say(await whileStopped(call.home, layout, say, () => rotate(call.home, layout, args.names)));
  return 0;
}

function readArguments(call: Invocation): RotateArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    options: OPERATOR_OPTIONS,
    allowPositionals: true,
  });
  if (values.help === true) return 'help';
  for (const name of positionals) {
    if (Object.hasOwn(NEVER_ROTATED, name)) throw new UsageError(`${name} can't be rotated: ${NEVER_ROTATED[name]}`);
    if (!ROTATED.some((each) => each === name)) throw new UsageError(`${name} is not a secret that can be rotated`);
  }
  return { data: dataDirectory(values.data, call), names: positionals };
}

function rotate(home: string, layout: Layout, names: readonly string[]): string {
  const { values, readFrom: before = '' } = keptSecrets(layout.secrets, []);
  const absent = names.find((name) => (values[name] ?? '') === '');
  if (absent !== undefined)
    throw new StackError(
      `This stack did not generate ${absent}.`,
      'change it where it is set: in .env or the environment',
    );
  const chosen = (names.length > 0 ? names : ROTATED).filter((name) => (values[name] ?? '') !== '');
  const stamp = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  writeFileAtomically(`${layout.secrets}${BEFORE_ROTATION}${stamp}`, before);
  const fresh = Object.fromEntries(chosen.map((name) => [name, generatePassword()]));
  writeFileAtomically(layout.secrets, `${JSON.stringify({ ...values, ...fresh }, null, 2)}\n`);
  const set = readEnvFile(home, undefined, layout.env).layer?.values ?? {};
  const overridden = chosen.filter((name) => (set[name] ?? '') !== '');
  return `New values for ${chosen.join(', ')}.
${overridden.length === 0 ? '' : `.env also sets ${overridden.join(', ')} and takes precedence. Change the value there, too.\n`}To apply them, start the stack: ./scripts/start.sh --embedded --data ${layout.root}
The old values are kept in ${layout.secrets}${BEFORE_ROTATION}${stamp} until the stack works.
`;
}
