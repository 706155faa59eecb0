// What upgrade.sh asks of our image for the stack in containers: preconditions that management
// knows, and the record of the last upgrade.

import { type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import { upgradeRecordSchema } from '../../../shared/host/port.ts';
import { readUpgradeRecord, writeUpgradeRecord } from '../../../shared/host/upgrades.ts';
import { askRunning, failedBefore } from './preconditions.ts';

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;

/** `inside`: in the running container of management. Prints tab-separated values. */
export async function inside({ argv, environment }: Invocation): Promise<number> {
  const { values } = parseCommandLine({
    args: argv.slice(1),
    options: { again: flag, 'without-backup': flag, clear: flag, 'way-back': flag },
  });
  const management = environment['DATA_DIR'];
  if (management === undefined) throw new UsageError('DATA_DIR is not set');
  if (values.clear === true) {
    const record = await readUpgradeRecord(management);
    if (record !== undefined) writeUpgradeRecord(management, { ...record, cleared: true });
    return 0;
  }
  if (values['way-back'] === true) {
    const wayBack = (await readUpgradeRecord(management))?.way_back ?? null;
    if (wayBack !== null) print([wayBack.version, wayBack.at, wayBack.snapshot ?? '-', String(wayBack.schema_changed)]);
    return 0;
  }
  const checks = [
    await failedBefore(management, values.again === true),
    ...(await askRunning(management, values['without-backup'] === true)),
  ];
  for (const { name, status, text: words, remedy } of checks) print([status, name, words, remedy ?? '']);
  return 0;
}

function print(fields: readonly string[]): void {
  process.stdout.write(`${fields.map((field) => field.replaceAll(/\s+/g, ' ')).join('\t')}\n`);
}

/** `record`: in a container of its own, with the volume of management in --data. */
export async function record({ argv }: Invocation): Promise<number> {
  const { values } = parseCommandLine({
    args: argv.slice(1),
    options: {
      data: text,
      outcome: text,
      from: text,
      to: text,
      reason: text,
      snapshot: text,
      'schema-changed': text,
    },
  });
  const { data, outcome, from = '', to = '', snapshot, reason } = values;
  if (data === undefined) throw new UsageError('--data is missing');
  const earlier = await readUpgradeRecord(data).catch(() => undefined);
  const at = new Date().toISOString();
  const isFailure = outcome === 'returned' || outcome === 'stuck';
  const wayBack = {
    version: from,
    at,
    snapshot: snapshot ?? null,
    schema_changed: values['schema-changed'] !== 'false',
  };
  writeUpgradeRecord(
    data,
    upgradeRecordSchema.parse({
      outcome,
      from,
      to,
      at,
      reason: isFailure ? (reason ?? null) : null,
      set_aside: null,
      way_back: isFailure ? (earlier?.way_back ?? null) : outcome === 'upgraded' ? wayBack : null,
      cleared: false,
    }),
  );
  return 0;
}
