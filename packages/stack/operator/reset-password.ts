// Sets a new password for a user through the running management process.
// Reads it from a prompt or standard input, so that it is in no argument, log or error.

import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, readHidden, UsageError } from '@holdfast/kit/command';
import { writeFileAtomically } from '@holdfast/kit/files';
import { nameKey, WEBADMIN } from '@holdfast/kit/names';
import { passwordFault } from '../../../shared/identity/rules.ts';
import { layoutOf } from '../process/layout.ts';
import { generatePassword, keptSecrets } from '../secrets.ts';
import { askManagement, OPERATOR_OPTIONS, type OperatorPlace, operatorPlace } from './place.ts';

interface ResetArguments {
  place: OperatorPlace;
  username: string;
  generate: boolean;
  /** True if the calling script has already written it into .env. */
  isWritten: boolean;
  /**
   * secrets.json of an embedded stack; undefined in containers, where the calling script writes
   * .env.
   */
  secrets: string | undefined;
}

const USAGE = `Usage: ./scripts/reset-password.sh [USER] [--generate] [--data DIR]

Sets a new password for USER (default ${WEBADMIN}) and ends all their sessions. Prompts twice, hidden.

  --generate    generate a password and print it once
  --data DIR    data directory of a running embedded stack
  --help        show this help
`;
const WITHIN_MS = 60_000;

/** The program of reset-password.sh; resolves with its exit code. */
export async function resetPassword(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const { place, username, generate, secrets } = args;
  const password = generate ? generatePassword() : await promptedPassword(username);
  const fault = passwordFault(password, username);
  if (fault !== undefined)
    throw new StackError(`The password was not changed: it ${fault}.`, 'choose another password, or use --generate');
  const isWebadmin = nameKey(username) === WEBADMIN;
  // Written first: otherwise, after a crash in between, the next start would restore the old
  // password.
  const restore = isWebadmin && secrets !== undefined ? await writeForNextStart(secrets, password, place) : undefined;
  const isOfSettings = isWebadmin && (args.isWritten || restore !== undefined);
  try {
    await askManagement(place, { ask: 'password', username, password, isOfSettings }, WITHIN_MS);
  } catch (error) {
    restore?.();
    throw error;
  }
  if (isOfSettings && secrets !== undefined) updateStackFile(layoutOf(dirname(secrets)).stack, password);
  process.stderr.write(`Password of ${username} changed. All their sessions have ended.\n`);
  if (isWebadmin && !isOfSettings)
    process.stderr.write('CORE_WEBADMIN_PASSWORD is set manually and was not changed. Update it there, too.\n');
  if (generate) process.stdout.write(`${password}\n`);
  return 0;
}

function readArguments(call: Invocation): ResetArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    options: { ...OPERATOR_OPTIONS, generate: { type: 'boolean' }, 'settings-written': { type: 'boolean' } },
    allowPositionals: true,
  });
  if (values.help === true) return 'help';
  const [username = WEBADMIN, more] = positionals;
  if (username === '') throw new UsageError('The username is empty');
  if (more !== undefined)
    throw new UsageError(`Unexpected argument: ${more}. Name one user. The program prompts for the password`);
  const place = operatorPlace(values.data, call);
  const file = layoutOf(dirname(place.directory)).secrets;
  const secrets = existsSync(file) ? file : undefined;
  const isWritten = values['settings-written'] === true;
  return { place, username, generate: values.generate === true, isWritten, secrets };
}

/** Prompts twice on a terminal. Otherwise reads the first line of standard input. */
async function promptedPassword(username: string): Promise<string> {
  if (!process.stdin.isTTY) return firstLine();
  const first = await readHidden(`New password for ${username}: `);
  const second = await readHidden('Repeat the password: ');
  if (first === second) return first;
  throw new StackError("The passwords don't match. Nothing was changed.", 'try again');
}

async function firstLine(): Promise<string> {
  for await (const line of createInterface({ input: process.stdin })) return line;
  throw new StackError('No password on standard input.', 'run this in a terminal, or with --generate');
}

/**
 * Writes the password that the next start sets for webadmin. Resolves with a function that reverts
 * it, or with undefined if the password was set manually: a start doesn't apply that one again.
 */
async function writeForNextStart(
  file: string,
  password: string,
  place: OperatorPlace,
): Promise<(() => void) | undefined> {
  const source = await askManagement(place, { ask: 'source', name: 'CORE_WEBADMIN_PASSWORD' }, WITHIN_MS);
  if (source !== 'generated') return undefined;
  const { values, readFrom: before = '' } = keptSecrets(file, []);
  writeFileAtomically(file, `${JSON.stringify({ ...values, CORE_WEBADMIN_PASSWORD: password }, null, 2)}\n`);
  return () => writeFileAtomically(file, before);
}

/** Updates stack.json, which shows how to sign in. */
function updateStackFile(file: string, password: string): void {
  const content = JSON.parse(readFileSync(file, 'utf8')) as object;
  const webadmin = { username: WEBADMIN, password };
  writeFileAtomically(file, `${JSON.stringify({ ...content, webadmin }, null, 2)}\n`);
}
