// Parses the command line of start.sh --embedded.

import { resolve } from 'node:path';
import { isUnicastAddress, normalAddress } from '@holdfast/kit/addresses';
import { type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import type { RestoreArguments } from './backup/restore.ts';
import { MAX_NODES } from './cluster.ts';
import { blockedPort, dataDirectory, HIGHEST_BASE_PORT, type WantedParts } from './process/layout.ts';

export interface StartArguments {
  embedded: boolean;
  /** Absolute. */
  data: string;
  offset: number;
  detach: boolean;
  /** With the flow engine. */
  flows: boolean;
  /** How many core nodes; undefined: one, without a message server. */
  cluster?: number | undefined;
  listen: string | undefined;
  /**
   * Absolute; undefined means .env in the data directory, else in the repository root, if it
   * exists.
   */
  env: string | undefined;
  restore?: RestoreArguments | undefined;
}

export const START_USAGE = `Usage: ./scripts/start.sh --embedded [options]

  --embedded         run the whole stack on this machine, without containers
  --data DIR         data directory (default: data in the repository)
  --offset N         add N to every port (default 0)
  --listen ADDRESS   also accept connections from other machines on ADDRESS, over TLS (0.0.0.0: all addresses)
  --flows            also run the flow engine (Node-RED) on port 1880; the first start installs it from npm
  --cluster N        run N core nodes (2 to 9) over a NATS server, which must be installed
  --env FILE         read settings from FILE instead of .env in the data directory or the repository
  --restore FILE     restore a backup into the data directory first, which must be new or empty
  --passphrase-file FILE
                     the passphrase of the backup, in the first line of FILE
  --identity-file FILE
                     the age identity of the backup, if it was encrypted for a recipient
  --detach           return when the stack is running; to stop it: ./scripts/stop.sh --data DIR
  --help             show this help
`;

/** Parses the arguments of start.sh. */
export function parseStartArguments({ argv, home, cwd }: Invocation): StartArguments | 'help' {
  const { values } = parseCommandLine({
    args: argv,
    options: {
      embedded: { type: 'boolean' },
      data: { type: 'string' },
      offset: { type: 'string' },
      listen: { type: 'string' },
      env: { type: 'string' },
      restore: { type: 'string' },
      'passphrase-file': { type: 'string' },
      'identity-file': { type: 'string' },
      detach: { type: 'boolean' },
      flows: { type: 'boolean' },
      cluster: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  const parts = { flows: values.flows === true, nodes: cluster(values.cluster) };
  return {
    embedded: values.embedded === true,
    data: dataDirectory(values.data, { home, cwd }),
    offset: offset(values.offset, parts),
    detach: values.detach === true,
    flows: parts.flows,
    cluster: parts.nodes,
    listen: listen(values.listen),
    env: values.env === undefined ? undefined : resolve(cwd, values.env),
    restore: restoreArguments(cwd, values.restore, values['passphrase-file'], values['identity-file']),
  };
}

function restoreArguments(
  cwd: string,
  file: string | undefined,
  passphrase: string | undefined,
  identity: string | undefined,
): RestoreArguments | undefined {
  const keys = [passphrase, identity].filter((each) => each !== undefined);
  if (file === undefined) {
    if (keys.length === 0) return undefined;
    throw new UsageError('--passphrase-file and --identity-file need --restore FILE');
  }
  if (keys.length !== 1) throw new UsageError('--restore needs either --passphrase-file FILE or --identity-file FILE');
  const path = (value: string | undefined): string | undefined =>
    value === undefined ? undefined : resolve(cwd, value);
  return { file: resolve(cwd, file), passphraseFile: path(passphrase), identityFile: path(identity) };
}

function offset(value: string | undefined, parts: WantedParts): number {
  if (value === undefined) return 0;
  const max = 65535 - HIGHEST_BASE_PORT;
  if (!/^\d{1,5}$/.test(value) || Number(value) > max)
    throw new UsageError(`--offset ${value}: must be a whole number from 0 to ${max}`);
  const blocked = blockedPort(Number(value), parts);
  if (blocked === undefined) return Number(value);
  const { port, purpose, nextOffset } = blocked;
  throw new UsageError(
    `--offset ${value}: browsers refuse port ${port} (${purpose}). Use another offset, such as --offset ${nextOffset}`,
  );
}

function cluster(value: string | undefined): number | undefined {
  if (value === undefined || value === '1') return undefined;
  if (/^\d$/.test(value) && Number(value) >= 2) return Number(value);
  throw new UsageError(`--cluster ${value}: must be a number of core nodes from 1 to ${MAX_NODES}`);
}

function listen(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const address = normalAddress(value);
  if (address !== undefined && isUnicastAddress(address)) return address;
  throw new UsageError(`--listen ${value}: must be an IP address of this machine, or 0.0.0.0 for all addresses`);
}
