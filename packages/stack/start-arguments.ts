// Parses the command line of start.sh --embedded.

import { resolve } from 'node:path';
import { isUnicastAddress, normalAddress } from '@holdfast/kit/addresses';
import { type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import { blockedPort, dataDirectory, HIGHEST_BASE_PORT } from './process/layout.ts';

export interface StartArguments {
  embedded: boolean;
  /** Absolute. */
  data: string;
  offset: number;
  detach: boolean;
  /** With the flow engine. */
  flows: boolean;
  listen: string | undefined;
  /** Absolute; undefined means .env in the repository root, if it exists. */
  env: string | undefined;
}

export const START_USAGE = `Usage: ./scripts/start.sh --embedded [options]

  --embedded         run the whole stack on this machine, without containers
  --data DIR         data directory (default: data in the repository)
  --offset N         add N to every port (default 0)
  --listen ADDRESS   also accept connections from other machines on ADDRESS, over TLS (0.0.0.0: all addresses)
  --flows            also run the flow engine (Node-RED) on port 1880; the first start installs it from npm
  --env FILE         read settings from FILE instead of .env in the repository
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
      detach: { type: 'boolean' },
      flows: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  return {
    embedded: values.embedded === true,
    data: dataDirectory(values.data, { home, cwd }),
    offset: offset(values.offset, values.flows === true),
    detach: values.detach === true,
    flows: values.flows === true,
    listen: listen(values.listen),
    env: values.env === undefined ? undefined : resolve(cwd, values.env),
  };
}

function offset(value: string | undefined, flows: boolean): number {
  if (value === undefined) return 0;
  const max = 65535 - HIGHEST_BASE_PORT;
  if (!/^\d{1,5}$/.test(value) || Number(value) > max)
    throw new UsageError(`--offset ${value}: must be a whole number from 0 to ${max}`);
  const blocked = blockedPort(Number(value), flows);
  if (blocked === undefined) return Number(value);
  const { port, purpose, nextOffset } = blocked;
  throw new UsageError(
    `--offset ${value}: browsers refuse port ${port} (${purpose}). Use another offset, such as --offset ${nextOffset}`,
  );
}

function listen(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const address = normalAddress(value);
  if (address !== undefined && isUnicastAddress(address)) return address;
  throw new UsageError(`--listen ${value}: must be an IP address of this machine, or 0.0.0.0 for all addresses`);
}
