// The command line of start.sh, stop.sh and renew-ca.sh.

import { isAbsolute, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { isUnicastAddress, normalAddress } from '@holdfast/kit/addresses';
import { messageOf } from '@holdfast/kit/app-error';
import { UsageError } from '@holdfast/kit/command';
import { HIGHEST_BASE_PORT } from './process/layout.ts';

export interface StartArguments {
  embedded: boolean;
  /** Absolute. */
  data: string;
  offset: number;
  detach: boolean;
  /** With the flow engine. */
  flows: boolean;
  listen: string | undefined;
  /** Absolute; undefined means .env in the repository root, if it is there. */
  env: string | undefined;
}

export const START_USAGE = `Usage: ./scripts/start.sh --embedded [options]

  --embedded         run everything on this machine without containers
  --data DIR         where all data lives (default: data in the repository)
  --offset N         add N to every port (default 0)
  --listen ADDRESS   also serve other machines on this address, over TLS (0.0.0.0 for all)
  --flows            also run the flow engine (Node-RED), on port 1880; its first start installs it from npm
  --env FILE         read settings from FILE instead of .env in the repository
  --detach           return when the stack is healthy; ./scripts/stop.sh --data DIR stops it
  --help             show this text
`;

export const STOP_USAGE = `Usage: ./scripts/stop.sh [--data DIR] [--remove]

  --data DIR         the directory that the stack was started with (default: data in the repository)
  --remove           delete all that the stack has there, once it has stopped; asks for DIR before
  --yes-delete-everything DIR
                     the same answer, where nobody can be asked
`;

export const RENEW_CA_USAGE = `Usage: ./scripts/renew-ca.sh [--data DIR] [--new-key]

Renews the CA of a stack that is stopped; docs/certificates.md says when and what follows.

  --data DIR         the directory that the stack was started with (default: data in the repository)
  --new-key          a new CA: every device must enroll again. Without it the CA keeps its key and name,
                     and the certificates of all devices go on working
  --help             show this text
`;

/** Parses the arguments of start.sh. `home` is the repository, `cwd` where the person stands. */
export function parseStartArguments(args: string[], home: string, cwd: string): StartArguments | 'help' {
  const values = parse(args, {
    embedded: { type: 'boolean' },
    data: { type: 'string' },
    offset: { type: 'string' },
    listen: { type: 'string' },
    env: { type: 'string' },
    detach: { type: 'boolean' },
    flows: { type: 'boolean' },
    help: { type: 'boolean' },
  });
  if (values['help'] === true) return 'help';
  return {
    embedded: values['embedded'] === true,
    data: directory(values['data'], home, cwd),
    offset: offset(values['offset']),
    detach: values['detach'] === true,
    flows: values['flows'] === true,
    listen: listen(values['listen']),
    env: typeof values['env'] === 'string' ? resolve(cwd, values['env']) : undefined,
  };
}

export interface StopArguments {
  /** Absolute. */
  data: string;
  remove: boolean;
  /** What was answered beforehand to the question whether everything is to be deleted. */
  answer: string | undefined;
}

/** Parses the arguments of stop.sh. */
export function parseStopArguments(args: string[], home: string, cwd: string): StopArguments | 'help' {
  const values = parse(args, {
    data: { type: 'string' },
    remove: { type: 'boolean' },
    'yes-delete-everything': { type: 'string' },
    help: { type: 'boolean' },
  });
  if (values['help'] === true) return 'help';
  const remove = values['remove'] === true;
  const given = values['yes-delete-everything'];
  if (given !== undefined && !remove) throw new UsageError('--yes-delete-everything belongs to --remove');
  const answer = given === undefined ? undefined : directory(given, home, cwd);
  return { data: directory(values['data'], home, cwd), remove, answer };
}

export interface RenewCaArguments {
  /** Absolute. */
  data: string;
  newKey: boolean;
  /** The directory of the core in its container, whose stack the script has found stopped. */
  coreFiles: string | undefined;
}

/** Parses the arguments of renew-ca.sh. */
export function parseRenewCaArguments(args: string[], home: string, cwd: string): RenewCaArguments | 'help' {
  const values = parse(args, {
    data: { type: 'string' },
    'new-key': { type: 'boolean' },
    'core-files': { type: 'string' },
    help: { type: 'boolean' },
  });
  if (values['help'] === true) return 'help';
  const coreFiles = values['core-files'];
  return {
    data: directory(values['data'], home, cwd),
    newKey: values['new-key'] === true,
    coreFiles: coreFiles === undefined ? undefined : directory(coreFiles, home, cwd),
  };
}

type Values = Record<string, string | boolean | undefined>;

function parse(args: string[], options: Record<string, { type: 'string' | 'boolean' }>): Values {
  try {
    return parseArgs({ args, options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(messageOf(error).split('. ')[0]);
  }
}

/** An absolute path; without a value `data` in `home`. Throws a UsageError. */
export function directory(value: string | boolean | undefined, home: string, cwd: string): string {
  if (value === undefined) return resolve(home, 'data');
  if (typeof value !== 'string' || value === '' || /\p{Cc}/u.test(value))
    throw new UsageError('--data needs a directory, without control characters');
  return isAbsolute(value) ? resolve(value) : resolve(cwd, value);
}

function offset(value: string | boolean | undefined): number {
  if (value === undefined) return 0;
  const most = 65535 - HIGHEST_BASE_PORT;
  if (typeof value === 'string' && /^\d{1,5}$/.test(value) && Number(value) <= most) return Number(value);
  throw new UsageError(`--offset ${String(value)}: must be a whole number from 0 to ${most}`);
}

function listen(value: string | boolean | undefined): string | undefined {
  if (value === undefined) return undefined;
  const address = typeof value === 'string' ? normalAddress(value) : undefined;
  if (address !== undefined && isUnicastAddress(address)) return address;
  throw new UsageError(`--listen ${String(value)}: must be an IP address of this machine, or 0.0.0.0 for all of them`);
}
