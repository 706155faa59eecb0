// Gives a user a new password, set by the running management process. It comes on the standard input
// and stands in no argument, log or error; without a terminal that is asked, the first line is taken.

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
  /** The script that called this has written it into .env already. */
  isWritten: boolean;
  /** secrets.json of an embedded stack; undefined in containers, where the script writes .env. */
  secrets: string | undefined;
}

const USAGE = `Usage: ./scripts/reset-password.sh [USER] [--generate] [--data DIR]

Sets the password of USER (default ${WEBADMIN}), who is signed out everywhere. Asks for it twice without showing it.

  --generate    make one, and print it once
  --data DIR    the directory of a running embedded stack
  --help        show this text
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
    throw new StackError(
      `The password was not set: it ${fault}.`,
      'choose another one, or let one be made with --generate',
    );
  const isWebadmin = nameKey(username) === WEBADMIN;
  // First: were it last, a crash in between would have the next start set the old one again.
  const restore = isWebadmin && secrets !== undefined ? await keptIn(secrets, password, place) : undefined;
  const isOfSettings = isWebadmin && (args.isWritten || restore !== undefined);
  try {
    await askManagement(place, { ask: 'password', username, password, isOfSettings }, WITHIN_MS);
  } catch (error) {
    restore?.();
    throw error;
  }
  if (isOfSettings && secrets !== undefined) showIn(layoutOf(dirname(secrets)).stack, password);
  process.stderr.write(`${username} has a new password, and is signed out everywhere.\n`);
  if (isWebadmin && !isOfSettings)
    process.stderr.write('CORE_WEBADMIN_PASSWORD is set by hand and stays as it is: change it there, too.\n');
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
  if (username === '') throw new UsageError('The name of the user is empty');
  if (more !== undefined)
    throw new UsageError(`${more}: one user at a time; a password is no argument, it is asked for`);
  const place = operatorPlace(values.data, call);
  const file = layoutOf(dirname(place.directory)).secrets;
  const secrets = existsSync(file) ? file : undefined;
  const isWritten = values['settings-written'] === true;
  return { place, username, generate: values.generate === true, isWritten, secrets };
}

/** Twice on a terminal; else the first line of what comes in. */
async function promptedPassword(username: string): Promise<string> {
  if (!process.stdin.isTTY) return firstLine();
  const first = await readHidden(`New password of ${username}: `);
  const second = await readHidden('The same once more: ');
  if (first === second) return first;
  throw new StackError('The two are not the same; nothing was changed.', 'try again');
}

async function firstLine(): Promise<string> {
  for await (const line of createInterface({ input: process.stdin })) return line;
  throw new StackError('No password came on the standard input.', 'call this on a terminal, or with --generate');
}

/**
 * Writes the password that the next start gives webadmin, and answers with what takes it back. Undefined where a person has set
 * it: what a start has applied once it does not apply again.
 */
async function keptIn(file: string, password: string, place: OperatorPlace): Promise<(() => void) | undefined> {
  const source = await askManagement(place, { ask: 'source', name: 'CORE_WEBADMIN_PASSWORD' }, WITHIN_MS);
  if (source !== 'generated') return undefined;
  const { values, readFrom: before = '' } = keptSecrets(file, []);
  writeFileAtomically(file, `${JSON.stringify({ ...values, CORE_WEBADMIN_PASSWORD: password }, null, 2)}\n`);
  return () => writeFileAtomically(file, before);
}

/** The file that says how to sign in. */
function showIn(file: string, password: string): void {
  const content = JSON.parse(readFileSync(file, 'utf8')) as object;
  const webadmin = { username: WEBADMIN, password };
  writeFileAtomically(file, `${JSON.stringify({ ...content, webadmin }, null, 2)}\n`);
}
