// Prints the emergency sheet of a running stack as text: where its backups are, where their key is,
// and how to restore one on another machine.

import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { formatUtc } from '@holdfast/kit/format';
import type { EmergencySheet } from '../../../shared/backups/view.ts';
import { askManagement, OPERATOR_OPTIONS, type OperatorPlace, operatorPlace } from './place.ts';

const USAGE = `Usage: ./scripts/emergency-sheet.sh [--data DIR]

Prints one page to keep where you find it without the server: address, where backups are, how to get
their key, and the command that restores one. It never contains the key itself.

  --data DIR    data directory of a running embedded stack
  --help        show this help
`;
const WITHIN_MS = 30_000;
const COLUMNS = 78;

/** The program of emergency-sheet.sh; resolves with its exit code: 1 if no backups are made. */
export async function emergencySheet(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  const sheet = (await askManagement(args, { ask: 'emergency-sheet' }, WITHIN_MS)) as EmergencySheet;
  for (const problem of sheet.problems) say(`Warning: ${problem}\n`);
  process.stdout.write(sheetText(sheet));
  if (sheet.place !== null) return 0;
  say('No backups are made.\n  Remedy: set BACKUP_TARGET and BACKUP_PASSPHRASE, then restart\n');
  return 1;
}

function readArguments(call: Invocation): OperatorPlace | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    options: OPERATOR_OPTIONS,
    allowPositionals: true,
  });
  if (values.help === true) return 'help';
  if (positionals[0] !== undefined) throw new UsageError(`Unexpected argument: ${positionals[0]}`);
  return operatorPlace(values.data, call);
}

/** One page of plain text. */
export function sheetText(sheet: EmergencySheet): string {
  const { name, place, last_proven: proven, key, restore, release, ca_fingerprint: fingerprint } = sheet;
  const last = proven === null ? 'None is proven yet.' : `The last proven one is ${proven.name} (${proven.level}).`;
  const steps = [
    `Get the archive. Backups are in ${place ?? 'no place yet: BACKUP_TARGET is not set'}. ${last} Take a newer one if there is one.`,
    `Get the key. ${key.where}`,
    `Install Holdfast ${release} or newer on a machine with Linux.`,
    'Restore. Write the key to FILE, readable only by you. In the directory of Holdfast, run:',
    'Check. The console shows the CA fingerprint below under Certificates. Then point DNS or the address to the new machine; devices keep their certificates.',
  ];
  const numbered = steps.flatMap((step, at) => [
    ...wrapped(step, `${at + 1}. `),
    ...(step.startsWith('Restore.') ? [`     ${restore}`] : []),
    '',
  ]);
  const facts = {
    Console: sheet.console,
    Portal: sheet.portal,
    Stack: sheet.kind,
    Release: release,
    'CA fingerprint': fingerprint ?? 'unknown',
    'Variable of the key': key.variable,
    Printed: formatUtc(sheet.printed_at),
    'Key kept by': '______________________________',
    'Phone numbers': '______________________________',
  };
  const title = `EMERGENCY SHEET: ${name}`;
  return [
    title,
    '='.repeat(title.length),
    '',
    ...numbered,
    ...Object.entries(facts).map(([what, value]) => `${`${what}:`.padEnd(21)}${value}`),
    '',
  ].join('\n');
}

function wrapped(text: string, mark: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + word.length + 1 > COLUMNS - mark.length) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.map((line, at) => `${at === 0 ? mark : ' '.repeat(mark.length)}${line}`);
}
