// Checks what an upgrade needs, all at once, before anything is changed.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf } from '@holdfast/kit/app-error';
import { formatBytes } from '@holdfast/kit/format';
import { compareVersions } from '@holdfast/kit/release';
import { readUpgradeRecord } from '../../../shared/host/upgrades.ts';
import { askManagement } from '../operator/place.ts';
import type { Layout } from '../process/layout.ts';
import { runningSupervisor } from '../process/ownership.ts';
import { linkOutside, roomForSnapshot } from './snapshot.ts';
import { changedFiles, conflictingNames, isFetched, type Target } from './versions.ts';

export interface Precondition {
  name: string;
  status: 'ok' | 'note' | 'failed';
  text: string;
  remedy?: string;
}

export interface Situation {
  home: string;
  layout: Layout;
  version: string;
  target: Target;
  environment: NodeJS.ProcessEnv;
  /** Somebody has looked at the failed upgrade. */
  again: boolean;
  withoutBackup: boolean;
}

const ASK_WITHIN_MS = 20_000;
const healthSchema = z.object({
  status: z.string(),
  modules: z.record(z.string(), z.object({ status: z.string(), message: z.string() })),
});

const stackSchema = z.object({
  database: z.string(),
  state_database: z.string(),
  started_with: z
    .object({ arguments: z.array(z.string()), environment: z.array(z.string()) })
    .default({ arguments: [], environment: [] }),
});
type KnownStack = z.infer<typeof stackSchema>;

/** What the last start wrote; undefined if the directory holds no stack that was started. */
export function knownStack({ stack }: Layout): KnownStack | undefined {
  if (!existsSync(stack)) return undefined;
  try {
    return stackSchema.parse(JSON.parse(readFileSync(stack, 'utf8')));
  } catch {
    return undefined;
  }
}

/** Every precondition of `apply`. */
export async function preconditions(situation: Situation): Promise<Precondition[]> {
  return [
    supportedVersion(situation),
    localChanges(situation),
    ...startSettings(situation),
    room(situation),
    await failedBefore(situation.layout.management, situation.again),
    ...(await healthAndWork(situation)),
  ];
}

export function supportedVersion({ version, target }: Pick<Situation, 'version' | 'target'>): Precondition {
  const { upgradesFrom, version: to } = target;
  const order = compareVersions(version, upgradesFrom);
  if (order !== undefined && order >= 0)
    return { name: 'version', status: 'ok', text: `${to} upgrades from ${upgradesFrom} and later` };
  return {
    name: 'version',
    status: 'failed',
    text: `${to} does not upgrade from ${version}, only from ${upgradesFrom} and later`,
    remedy: `upgrade to ${upgradesFrom} first: ./scripts/upgrade.sh apply --to ${upgradesFrom}`,
  };
}

function localChanges({ home, version, target }: Situation): Precondition {
  const name = 'files';
  const changed = changedFiles(home, version);
  const conflicts = isFetched(home, target.version) ? conflictingNames(home, target.version) : [];
  const first = changed[0] ?? conflicts[0];
  if (first === undefined) return { name, status: 'ok', text: 'no local changes' };
  return {
    name,
    status: 'failed',
    text: changed.length > 0 ? `${first} was changed here` : `${first} is not a part of Holdfast ${version}`,
    remedy:
      changed.length > 0
        ? 'keep settings in .env and compose/compose.local.yaml. To see the changes: git diff. To undo them: git restore .'
        : 'move it out of this directory',
  };
}

function startSettings({ layout, environment }: Situation): Precondition[] {
  const stack = knownStack(layout);
  if (stack === undefined)
    return [
      {
        name: 'data',
        status: 'failed',
        text: `${layout.root} holds no stack that this version has started`,
        remedy: 'start it once with ./scripts/start.sh --embedded, or give its directory with --data DIR',
      },
    ];
  const missing = stack.started_with.environment.filter((name) => environment[name] === undefined);
  const found: Precondition[] = [];
  if (missing.length > 0)
    found.push({
      name: 'settings',
      status: 'failed',
      text: `the running stack got ${missing.join(', ')} from its environment`,
      remedy: 'set the same variables for this command, or write them to .env',
    });
  if (new URL(stack.state_database).host !== new URL(stack.database).host)
    found.push({
      name: 'database',
      status: 'failed',
      text: 'DATABASE_URL names a database outside of this stack, which a copy of the data does not contain',
      remedy: 'back up that database, then upgrade by hand: see "A database outside of the stack" in docs/upgrade.md',
    });
  const link = linkOutside(layout);
  if (link !== undefined)
    found.push({
      name: 'data',
      status: 'failed',
      text: `${link} is a symbolic link, which a copy of the data does not contain`,
      remedy: 'move the directory to its place, or mount the other disk there',
    });
  return found;
}

function room({ layout }: Situation): Precondition {
  if (!existsSync(layout.root)) return { name: 'room', status: 'note', text: 'no data yet' };
  const { neededBytes, freeBytes } = roomForSnapshot(layout);
  const text = `${formatBytes(neededBytes)} needed for a copy of the data, ${formatBytes(freeBytes)} free`;
  if (freeBytes >= neededBytes) return { name: 'room', status: 'ok', text };
  const remedy = `free some space on the disk of ${layout.root}. To delete the copy of an earlier upgrade: ./scripts/upgrade.sh check --discard-snapshot`;
  return { name: 'room', status: 'failed', text, remedy };
}

/** `management`: DATA_DIR. */
export async function failedBefore(management: string, again: boolean): Promise<Precondition> {
  const name = 'earlier upgrade';
  const record = await readUpgradeRecord(management);
  const isFailed = record !== undefined && ['returned', 'stuck'].includes(record.outcome) && !record.cleared;
  if (!isFailed) return { name, status: 'ok', text: 'none failed' };
  const text = `the upgrade to ${record.to} failed: ${record.reason}`;
  if (again) return { name, status: 'note', text };
  const remedy = 'find the cause first. Then ./scripts/upgrade.sh check --clear, or repeat this with --again';
  return { name, status: 'failed', text, remedy };
}

async function healthAndWork({ home, layout, withoutBackup }: Situation): Promise<Precondition[]> {
  const script = isBackingUp(home) ? [workIn(['./scripts/backup.sh'])] : [];
  if (runningSupervisor(layout) === undefined)
    return [{ name: 'health', status: 'note', text: 'the stack is not running, so its health is unknown' }, ...script];
  return [...(await askRunning(layout.management, withoutBackup)), ...script];
}

/** The script holds the lock of its own file. */
function isBackingUp(home: string): boolean {
  return spawnSync('flock', ['--nonblock', join(home, 'scripts/backup.sh'), 'true']).status === 1;
}

/** Health, running work and backups, as management reports them. `directory`: DATA_DIR. */
export async function askRunning(directory: string, withoutBackup: boolean): Promise<Precondition[]> {
  const place = { directory, remedy: 'start the stack again' };
  try {
    const health = healthSchema.parse(await askManagement(place, { ask: 'health' }, ASK_WITHIN_MS));
    const busy = z.array(z.string()).parse(await askManagement(place, { ask: 'busy' }, ASK_WITHIN_MS));
    return [healthIn(health), workIn(busy), backupIn(health, withoutBackup)];
  } catch (error) {
    return [
      {
        name: 'health',
        status: 'failed',
        text: `management did not answer: ${messageOf(error)}`,
        remedy: 'restart the stack, or stop it: a stopped stack is upgraded without this check',
      },
    ];
  }
}

type Health = z.infer<typeof healthSchema>;

/** An upgrade may be the remedy of an update notice, so that module does not count. */
function healthIn({ modules }: Health): Precondition {
  const critical = Object.entries(modules).filter(([name, { status }]) => status === 'critical' && name !== 'updates');
  const [first] = critical;
  if (first === undefined) return { name: 'health', status: 'ok', text: 'nothing is critical' };
  return {
    name: 'health',
    status: 'failed',
    text: `${first[0]} is critical: ${first[1].message}`,
    remedy: 'repair it first, so that a failure of the new version can be told from this one',
  };
}

function workIn(busy: readonly string[]): Precondition {
  if (busy.length === 0) return { name: 'work', status: 'ok', text: 'no retention, vacuum or backup is running' };
  return {
    name: 'work',
    status: 'failed',
    text: `running or queued: ${busy.join(', ')}`,
    remedy: 'wait until it has ended (console: Jobs)',
  };
}

function backupIn({ modules }: Health, withoutBackup: boolean): Precondition {
  const name = 'backup';
  const { backup } = modules;
  if (backup === undefined) return { name, status: 'note', text: 'backups are not set up' };
  const { status, message: text } = backup;
  if (status === 'ok' || status === 'note' || withoutBackup)
    return { name, status: status === 'ok' ? 'ok' : 'note', text };
  return { name, status: 'failed', text, remedy: 'make a backup and prove it, or repeat this with --without-backup' };
}
