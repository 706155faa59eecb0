// Decides whether the version before the last upgrade can come back, and what that would lose.

import { existsSync } from 'node:fs';
import { messageOf } from '@holdfast/kit/app-error';
import { counted, formatDuration, formatUtc } from '@holdfast/kit/format';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { readUpgradeRecord } from '../../../shared/host/upgrades.ts';
import type { Layout } from '../process/layout.ts';
import { runningSupervisor } from '../process/ownership.ts';
import type { Journal } from './journal.ts';
import { knownStack } from './preconditions.ts';
import { isFetched } from './versions.ts';

const COUNT_WITHIN_MS = 30_000;

type Plan = Pick<Journal, 'kind' | 'from' | 'to' | 'snapshot' | 'schema_changed'>;

/** The plan, or the reason why it is not possible. */
export async function planBack(
  { home, toSnapshot }: { home: string; toSnapshot: boolean },
  layout: Layout,
  version: string,
  environment: NodeJS.ProcessEnv,
): Promise<Plan | string> {
  const record = await readUpgradeRecord(layout.management);
  const wayBack = record?.way_back ?? null;
  if (wayBack === null) return `There is no upgrade to version ${version} of ${layout.root} to go back from.\n`;
  const [from, to] = [wayBack.version, version];
  const { schema_changed: schemaChanged, snapshot } = wayBack;
  if (!isFetched(home, from))
    return `Version ${from} can't come back: its programs are no longer in ${home}/.upgrade.\n`;
  const missing = knownStack(layout)?.started_with.environment.filter((name) => environment[name] === undefined) ?? [];
  if (missing.length > 0)
    return `The running stack got ${missing.join(', ')} from its environment.\n  Remedy: set the same variables for this command, or write them to .env\n`;
  if (!toSnapshot && !schemaChanged) return { kind: 'back', from: to, to: from, snapshot, schema_changed: false };
  if (snapshot === null || !existsSync(snapshot))
    return schemaChanged
      ? `Version ${from} can't come back: ${to} changed a database, and the copy of the data from before the upgrade is gone.\n  Remedy: restore a backup that ${from} made\n`
      : `The copy of the data from before the upgrade is gone.\n  Remedy: go back with the current data: leave --to-snapshot out\n`;
  const loss = await lossSince(layout, wayBack.at);
  if (toSnapshot) {
    process.stderr.write(`The data of ${formatUtc(wayBack.at)} comes back. ${loss}\n`);
    return { kind: 'back-to-snapshot', from: to, to: from, snapshot, schema_changed: schemaChanged };
  }
  return `Version ${from} can't work on the current data: ${to} changed a database. It can only come back with the data of ${formatUtc(wayBack.at)}.\n${loss}\n  Remedy: accept this with ./scripts/upgrade.sh back --to-snapshot, or keep ${to}\n`;
}

/** What came since the upgrade, as far as it can be counted. */
async function lossSince(layout: Layout, at: string): Promise<string> {
  const passed = formatDuration(Math.max(0, Date.now() - Date.parse(at)));
  const head = `This loses everything of the last ${passed}: messages, files, people, certificates and settings in the console`;
  const stack = knownStack(layout);
  if (stack === undefined || runningSupervisor(layout) === undefined) return `${head} (start the stack to count it).`;
  try {
    const [events, changes] = await Promise.all([
      countSince(stack.database, `SELECT count(*)::int AS count FROM cot_router WHERE servertime > $1`, at),
      countSince(stack.state_database, `SELECT count(*)::int AS count FROM audit_record WHERE at > $1`, at),
    ]);
    return `${head}. That is ${counted(events, 'CoT message')} and ${counted(changes, 'record')} of the audit log.`;
  } catch (error) {
    return `${head} (couldn't count it: ${messageOf(error)}).`;
  }
}

async function countSince(url: string, statement: string, at: string): Promise<number> {
  return withDatabase(new Secret(url), 'holdfast-upgrade', COUNT_WITHIN_MS, async (sql) => {
    const [row] = await sql.unsafe<{ count: number }[]>(statement, [at]);
    return row?.count ?? 0;
  });
}
