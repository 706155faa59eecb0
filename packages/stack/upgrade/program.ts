// Checks for a newer version, prepares it, and starts an upgrade or the way back.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { compareVersions } from '@holdfast/kit/release';
import { writeFileAtomically } from '@holdfast/kit/files';
import { readUpgradeRecord, writeUpgradeRecord } from '../../../shared/host/upgrades.ts';
import { BEFORE_UPGRADE, SET_ASIDE } from '../parts.ts';
import { dataDirectory, type Layout, layoutOf } from '../process/layout.ts';
import { runningSupervisor } from '../process/ownership.ts';
import { planBack } from './back.ts';
import { inside, record } from './inside.ts';
import { type Journal, readJournal, UPGRADES, versionDirectory, writeJournal } from './journal.ts';
import { knownStack, type Precondition, preconditions, supportedVersion } from './preconditions.ts';
import { continueUpgrade, EXIT } from './run.ts';
import { discardCopies, freeName } from './snapshot.ts';
import { currentVersion, findTarget, isFetched, schemaOf, type Target } from './versions.ts';

const VERBS = ['check', 'fetch', 'apply', 'back', 'continue', 'recover'] as const;
type Verb = (typeof VERBS)[number];

export interface UpgradeArguments {
  verb: Verb;
  /** The installation; absolute. */
  home: string;
  data: string;
  to: string | undefined;
  from: string | undefined;
  again: boolean;
  withoutBackup: boolean;
  withinSeconds: number;
  json: boolean;
  clear: boolean;
  discardSnapshot: boolean;
  toSnapshot: boolean;
  leaveStopped: boolean;
}

const USAGE = `Usage: ./scripts/upgrade.sh check | fetch | apply | back [options]

  check                show the newest version and whether it can be applied (exit code 0: nothing to do, 10: can be
                       applied, 11: something prevents it)
  fetch                prepare the new version beside the running one
  apply                copy the data, start the new version, check it, and go back by itself if it fails
                       (exit code 0: done, 4: failed and went back, 5: stuck, 11: something prevents it)
  back                 return to the version before the last upgrade (exit code 3: no longer possible)

  --data DIR           data directory of the stack (default: data in the repository)
  --to VERSION         this version instead of the newest one
  --from DIRECTORY     a directory or clone with the newer version, instead of the tags of origin
  --within SECONDS     time for the start and the connection check together (default 600)
  --without-backup     apply although no recent backup is proven
  --again              apply although the last upgrade failed
  --to-snapshot        back: also put back the data of before the upgrade; what came since is put aside
  --clear              check: clear a failed upgrade, and delete the data that it put aside
  --discard-snapshot   check: delete the copy of the data from before the upgrade; then only "back" without it is left
  --json               check: print JSON
  --help               show this help
`;
/** For upgrade.sh: the journal is written, and the program in .upgrade/updater continues. */
const CONTINUE = 42;
const CODES = { nothing: 0, available: 10, prevented: 11, impossible: 3 } as const;
const MAX_SECONDS = 86_400;

/** The program of upgrade.sh; resolves with its exit code. */
export async function upgrade(call: Invocation): Promise<number> {
  const ofContainers = { inside, record }[call.argv[0] ?? ''];
  if (ofContainers !== undefined) return ofContainers(call);
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  return VERBS_DO[args.verb](args, call);
}

const VERBS_DO: Record<Verb, (args: UpgradeArguments, call: Invocation) => Promise<number>> = {
  check,
  fetch: fetchVersion,
  apply,
  back,
  continue: carryOn,
  recover: carryOn,
};

function readArguments(call: Invocation): UpgradeArguments | 'help' {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    allowPositionals: true,
    options: {
      home: text,
      data: text,
      to: text,
      from: text,
      within: text,
      again: flag,
      'without-backup': flag,
      json: flag,
      clear: flag,
      'discard-snapshot': flag,
      'to-snapshot': flag,
      'leave-stopped': flag,
      help: flag,
    },
  });
  if (values.help === true) return 'help';
  const verb = VERBS.find((each) => each === positionals[0]);
  if (verb === undefined || positionals.length > 1)
    throw new UsageError(`Give one of: check, fetch, apply, back (not '${positionals.join(' ')}')`);
  const within = values.within ?? '600';
  if (!/^[1-9]\d{0,4}$/.test(within) || Number(within) > MAX_SECONDS)
    throw new UsageError(`--within ${within}: must be a whole number of seconds up to ${MAX_SECONDS}`);
  const to = values.to?.replace(/^v/, '');
  if (to !== undefined && (compareVersions(to, '0') === undefined || to.includes('/')))
    throw new UsageError(`--to ${values.to}: must be a version, such as 0.2.0`);
  const home = values.home ?? call.home;
  return {
    verb,
    home,
    data: dataDirectory(values.data, { home, cwd: call.cwd }),
    to,
    from: values.from === undefined ? undefined : resolve(call.cwd, values.from),
    again: values.again === true,
    withoutBackup: values['without-backup'] === true,
    withinSeconds: Number(within),
    json: values.json === true,
    clear: values.clear === true,
    discardSnapshot: values['discard-snapshot'] === true,
    toSnapshot: values['to-snapshot'] === true,
    leaveStopped: values['leave-stopped'] === true,
  };
}

/** The newer version, if there is one. */
function newer(args: UpgradeArguments): Target | undefined {
  const target = findTarget(args);
  if (target === undefined) return undefined;
  return (compareVersions(target.version, currentVersion(args.home)) ?? 0) > 0 ? target : undefined;
}

async function check(args: UpgradeArguments, call: Invocation): Promise<number> {
  const layout = layoutOf(args.data);
  if (args.clear) await clear(layout);
  if (args.discardSnapshot) {
    const record = await readUpgradeRecord(layout.management);
    if (existsSync(layout.root)) discardCopies(layout, [record?.set_aside ?? null]);
    if (record?.way_back)
      writeUpgradeRecord(layout.management, { ...record, way_back: { ...record.way_back, snapshot: null } });
    say('Deleted the copy of the data from before the upgrade.\n');
  }
  const version = currentVersion(args.home);
  const target = newer(args);
  const checks = target === undefined ? [] : await checksOf(args, call, target);
  const code = target === undefined ? CODES.nothing : codeOf(checks);
  if (args.json) {
    const newest = target?.version ?? version;
    const fetched = target !== undefined && isFetched(args.home, target.version);
    process.stdout.write(`${JSON.stringify({ current: version, newest, fetched, code, preconditions: checks })}\n`);
    return code;
  }
  process.stdout.write(
    target === undefined
      ? `Holdfast ${version} is up to date.\n`
      : `Holdfast ${target.version} is available (installed: ${version}).\n${textOf(checks)}\n${planText(code)}`,
  );
  return code;
}

function planText(code: number): string {
  if (code === CODES.prevented) return "It can't be applied until the failed lines above are repaired.\n";
  return 'apply stops the stack, copies the data, starts the new version and runs the connection check.\nIf that fails, it puts the data back and starts this version again. To apply it: ./scripts/upgrade.sh apply\n';
}

async function clear(layout: Layout): Promise<void> {
  const record = await readUpgradeRecord(layout.management);
  if (record === undefined) return;
  const deleted = discardCopies(layout, [record.way_back?.snapshot ?? null]);
  writeUpgradeRecord(layout.management, { ...record, cleared: true, set_aside: null });
  say(`Cleared.${deleted.length === 0 ? '' : ` Deleted ${deleted.join(', ')}.`}\n`);
}

async function checksOf(args: UpgradeArguments, call: Invocation, target: Target): Promise<Precondition[]> {
  const { home, again, withoutBackup } = args;
  const version = currentVersion(home);
  const { environment } = call;
  return preconditions({ home, layout: layoutOf(args.data), version, target, environment, again, withoutBackup });
}

function codeOf(checks: readonly Precondition[]): number {
  return checks.some(({ status }) => status === 'failed') ? CODES.prevented : CODES.available;
}

function textOf(checks: readonly Precondition[]): string {
  return checks
    .map(({ name, status, text, remedy }) => {
      const advice = status === 'failed' && remedy !== undefined ? `\n         Remedy: ${remedy}` : '';
      return `  ${status.padEnd(6)} ${name.padEnd(16)} ${text}${advice}`;
    })
    .join('\n');
}

async function fetchVersion(args: UpgradeArguments): Promise<number> {
  const target = newer(args);
  if (target === undefined) {
    say(`Holdfast ${currentVersion(args.home)} is up to date.\n`);
    return CODES.nothing;
  }
  const supported = supportedVersion({ version: currentVersion(args.home), target });
  if (supported.status === 'failed') {
    say(`${textOf([supported])}\n`);
    return CODES.prevented;
  }
  prepare(args.home, target);
  say(`Version ${target.version} is ready. To apply it: ./scripts/upgrade.sh apply\n`);
  return CODES.nothing;
}

/** Nothing that runs is touched. Continues what was interrupted. */
function prepare(home: string, target: Target): void {
  if (isFetched(home, target.version)) return;
  say(`Preparing version ${target.version} in ${versionDirectory(home, target.version)}...\n`);
  const script = join(home, 'scripts/versions.sh');
  const { status } = spawnSync('bash', [script, 'fetch', home, target.version, target.source], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0)
    throw new StackError(`Couldn't prepare version ${target.version}.`, 'read the message above, then try again');
}

/** Copies the program that carries out the upgrade to where no step moves it. */
function installTools(home: string, version: string): void {
  const tools = join(home, UPGRADES, 'updater');
  const partial = `${tools}.partial`;
  rmSync(partial, { recursive: true, force: true });
  for (const place of ['dist', 'scripts', 'packages/stack/process'])
    mkdirSync(join(partial, place), { recursive: true });
  for (const file of ['dist/upgrade.js', 'scripts/versions.sh', 'packages/stack/process/guard.sh'])
    cpSync(join(version, file), join(partial, file));
  writeFileAtomically(join(partial, 'dist/package.json'), '{ "type": "module" }\n');
  const node = join(version, `node_modules/node-linux-${process.arch}/bin/node`);
  try {
    linkSync(node, join(partial, 'node'));
  } catch {
    cpSync(node, join(partial, 'node'));
  }
  rmSync(tools, { recursive: true, force: true });
  renameSync(partial, tools);
}

async function apply(args: UpgradeArguments, call: Invocation): Promise<number> {
  const { home } = args;
  const layout = layoutOf(args.data);
  const version = currentVersion(home);
  const target = newer(args);
  if (target === undefined) {
    say(`Holdfast ${version} is up to date.\n`);
    return CODES.nothing;
  }
  const before = await checksOf(args, call, target);
  if (codeOf(before) === CODES.available) prepare(home, target);
  const checks = codeOf(before) === CODES.available ? await checksOf(args, call, target) : before;
  say(`Upgrade from ${version} to ${target.version}:\n${textOf(checks)}\n`);
  if (codeOf(checks) === CODES.prevented) {
    say('Nothing was changed.\n');
    return CODES.prevented;
  }
  const directory = versionDirectory(home, target.version);
  installTools(home, directory);
  begin(args, layout, {
    kind: 'apply',
    from: version,
    to: target.version,
    snapshot: freeName(layout, BEFORE_UPGRADE, target.version),
    schema_changed: schemaOf(home) !== schemaOf(directory),
  });
  return CONTINUE;
}

function begin(
  { home, withinSeconds }: UpgradeArguments,
  layout: Layout,
  plan: Pick<Journal, 'kind' | 'from' | 'to' | 'snapshot' | 'schema_changed'>,
): void {
  writeJournal(home, {
    ...plan,
    direction: 'forward',
    step: 'stop',
    data: layout.root,
    arguments: knownStack(layout)?.started_with.arguments ?? [],
    was_running: runningSupervisor(layout) !== undefined,
    within_seconds: withinSeconds,
    set_aside: freeName(layout, SET_ASIDE, plan.kind === 'apply' ? plan.to : plan.from),
    reason: null,
  });
}

async function back(args: UpgradeArguments, call: Invocation): Promise<number> {
  const layout = layoutOf(args.data);
  const plan = await planBack(args, layout, currentVersion(args.home), call.environment);
  if (typeof plan === 'string') {
    say(plan);
    return CODES.impossible;
  }
  installTools(args.home, args.home);
  begin(args, layout, plan);
  return CONTINUE;
}

/** Runs in .upgrade/updater. `recover` drops what was interrupted before it changed anything. */
async function carryOn(args: UpgradeArguments, call: Invocation): Promise<number> {
  const journal = readJournal(args.home);
  if (journal === undefined) return EXIT.done;
  let next = args.leaveStopped ? { ...journal, was_running: false } : journal;
  if (args.verb === 'recover') {
    say(`The upgrade from ${journal.from} to ${journal.to} was interrupted. Continuing...\n`);
    const isEarly = next.direction === 'forward' && ['stop', 'snapshot'].includes(next.step);
    if (isEarly) next = { ...next, direction: 'return', step: 'start' };
    writeJournal(args.home, next);
  }
  return continueUpgrade({ home: args.home, tools: call.home }, next, args.verb === 'recover');
}
