// The command line of audit.sh.

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../shared/domain/thrown.ts';
import { UsageError } from './start-arguments.ts';

export interface AuditArguments {
  command: 'verify' | 'prune';
  /** Absolute; undefined: what DATABASE_URL names. */
  data: string | undefined;
  /** Absolute; undefined means .env in the repository root, if it is there. */
  env: string | undefined;
  /** Of prune: ISO 8601, the beginning of a day. */
  before: string;
  yes: boolean;
  althoughBroken: boolean;
}

export const AUDIT_USAGE = `Usage: ./scripts/audit.sh verify [options]
       ./scripts/audit.sh prune --before YYYY-MM-DD [--yes] [options]

  verify               look at every record: exit 0 when all are as they were written, else 1
  prune                remove the records from before that day (UTC); without --yes only say which
  --data DIR           the directory of a running embedded stack (default: data in the repository, or what
                       DATABASE_URL names when that is set)
  --env FILE           read AUDIT_KEY from FILE instead of .env in the repository
  --although-broken    prune a log although it is not as it was written
  --help               show this text
`;

/** `home` is the repository, `cwd` where the person stands, `today` a day such as 2026-01-31. */
export function parseAuditArguments(
  args: readonly string[],
  { home, cwd, hasDatabaseUrl, today }: { home: string; cwd: string; hasDatabaseUrl: boolean; today: string },
): AuditArguments | 'help' {
  const { values, positionals } = parse(args);
  if (values.help === true) return 'help';
  const [command, ...rest] = positionals;
  if (command !== 'verify' && command !== 'prune')
    throw new UsageError(`${command === undefined ? 'Nothing' : command} is no command: write verify or prune`);
  if (rest[0] !== undefined) throw new UsageError(`${rest[0]}: one command at a time`);
  const pruning = [values.before, values.yes, values['although-broken']].some((value) => value !== undefined);
  if (command === 'verify' && pruning) throw new UsageError('--before, --yes and --although-broken belong to prune');
  return {
    command,
    data: dataDirectory(values.data, hasDatabaseUrl, home, cwd),
    env: values.env === undefined ? undefined : resolve(cwd, values.env),
    before: command === 'prune' ? dayOf(values.before, today) : '',
    yes: values.yes === true,
    althoughBroken: values['although-broken'] === true,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        data: { type: 'string' },
        env: { type: 'string' },
        before: { type: 'string' },
        yes: { type: 'boolean' },
        'although-broken': { type: 'boolean' },
        help: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(messageOf(error).split('. ')[0]);
  }
}

function dataDirectory(value: string | undefined, hasUrl: boolean, home: string, cwd: string): string | undefined {
  if (value === undefined) return hasUrl ? undefined : resolve(home, 'data');
  if (value === '' || /\p{Cc}/u.test(value))
    throw new UsageError('--data needs a directory, without control characters');
  return resolve(cwd, value);
}

function dayOf(value: string | undefined, today: string): string {
  const example = `such as --before ${today}`;
  if (value === undefined) throw new UsageError(`prune needs a day before which records are removed, ${example}`);
  const time = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00.000Z`) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || !time.toISOString().startsWith(value))
    throw new UsageError(`--before ${value}: must be a day as YYYY-MM-DD, ${example}`);
  if (value > today) throw new UsageError(`--before ${value}: lies in the future; today (UTC) is ${today}`);
  return time.toISOString();
}
