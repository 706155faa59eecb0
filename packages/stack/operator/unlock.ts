// Frees an address that was locked after too many wrong passwords, or lists those that are locked.

import { argumentsOrUsage, type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import type { LockedAddress } from '../../../shared/sign-in/port.ts';
import { askManagement, OPERATOR_OPTIONS, type OperatorPlace, operatorPlace } from './place.ts';

interface UnlockArguments {
  place: OperatorPlace;
  /** Undefined: list. */
  address: string | undefined;
}

const USAGE = `Usage: ./scripts/unlock.sh ADDRESS [--data DIR]
       ./scripts/unlock.sh --list [--data DIR]

Frees an address that may not try a password now, at every door of the portal, the monitor and the API.

  --list        show the addresses that are locked
  --data DIR    the directory of a running embedded stack
  --help        show this text
`;
const WITHIN_MS = 10_000;
const OTHERS = `The core (ports 8446 and 8443) and the directory count by themselves and cannot be asked: a lock there ends
after 15 minutes, or with a restart of that part.
`;

/** The program of unlock.sh; resolves with its exit code. */
export async function unlock(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const { place, address } = args;
  if (address === undefined) {
    process.stdout.write(listText((await askManagement(place, { ask: 'lockouts' }, WITHIN_MS)) as LockedAddress[]));
    return 0;
  }
  await askManagement(place, { ask: 'unlock', address }, WITHIN_MS);
  process.stdout.write(`${address} may sign in again at once.\n${OTHERS}`);
  return 0;
}

function readArguments(call: Invocation): UnlockArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    options: { ...OPERATOR_OPTIONS, list: { type: 'boolean' } },
    allowPositionals: true,
  });
  if (values.help === true) return 'help';
  const [address, more] = positionals;
  if (more !== undefined) throw new UsageError(`${more}: one address at a time`);
  if ((address === undefined) === (values.list !== true))
    throw new UsageError(address === undefined ? 'Name an address, or say --list' : '--list takes no address');
  return { place: operatorPlace(values.data, call), address };
}

function listText(locked: readonly LockedAddress[]): string {
  if (locked.length === 0) return `No address is locked at the doors of management.\n${OTHERS}`;
  const lines = locked.map(
    ({ address, failures, locked_until: until }) =>
      `  ${address.padEnd(22)} until ${until} (${failures} wrong passwords)`,
  );
  return `${lines.join('\n')}\n${OTHERS}`;
}
