// Ends the lockout of an address, or lists locked-out addresses.

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

Ends the lockout of an address everywhere: in the portal, the console and the API.

  --list        show locked-out addresses
  --data DIR    data directory of a running embedded stack
  --help        show this help
`;
const WITHIN_MS = 10_000;
const OTHERS = `The core (ports 8446 and 8443) and the directory have lockouts of their own, which this program can't see.
They end after 15 minutes, or when you restart that service.
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
  process.stdout.write(`Lockout of ${address} ended.\n${OTHERS}`);
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
  if (more !== undefined) throw new UsageError(`Unexpected argument: ${more}. Give one address at a time`);
  if ((address === undefined) === (values.list !== true))
    throw new UsageError(address === undefined ? 'Give an address, or --list' : '--list takes no address');
  return { place: operatorPlace(values.data, call), address };
}

function listText(locked: readonly LockedAddress[]): string {
  if (locked.length === 0) return `No addresses are locked out of portal, console or API.\n${OTHERS}`;
  const lines = locked.map(
    ({ address, failures, locked_until: until }) =>
      `  ${address.padEnd(22)} until ${until} (${failures} wrong passwords)`,
  );
  return `${lines.join('\n')}\n${OTHERS}`;
}
