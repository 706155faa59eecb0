// Finds the stack of an exercise: by stack.json of an embedded stack, or by URL and token.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { StackError } from '@holdfast/kit/app-error';
import { type Invocation, UsageError } from '@holdfast/kit/command';
import { dataDirectory, layoutOf } from '../process/layout.ts';
import type { ManagementPlace } from './management.ts';

export interface ExercisePlace {
  management: ManagementPlace;
  host: string;
  port: number;
  /** Of core processes on this machine. */
  pids: number[];
}

export interface PlaceArguments {
  data: string | undefined;
  url: string | undefined;
  stream: string | undefined;
}

export const TOKEN_VARIABLE = 'HOLDFAST_TOKEN';
const STREAM_PORT = 8089;

const stackSchema = z.object({
  api: z.string(),
  core: z.object({ streaming: z.string() }),
  webadmin: z.object({ username: z.string(), password: z.string() }),
  pids: z.array(z.object({ role: z.string(), pid: z.int() })),
});

/** Throws a UsageError for arguments that do not fit, a StackError when no stack is there. */
export function exercisePlace({ data, url, stream }: PlaceArguments, call: Invocation): ExercisePlace {
  if (url === undefined) return embedded(layoutOf(dataDirectory(data, call)).stack, stream);
  if (data !== undefined) throw new UsageError('Give --data or --url, not both');
  if (!URL.canParse(url)) throw new UsageError(`--url ${url} is no URL`);
  const token = call.environment[TOKEN_VARIABLE]?.trim() ?? '';
  if (token === '') throw new UsageError(`--url needs an API token of an administrator in ${TOKEN_VARIABLE}`);
  return {
    management: { url: new URL(url).origin, authorization: `Bearer ${token}` },
    ...endpointOf(stream ?? `${new URL(url).hostname}:${STREAM_PORT}`),
    pids: [],
  };
}

function embedded(file: string, stream: string | undefined): ExercisePlace {
  if (!existsSync(file))
    throw new StackError(
      `${file} is missing: no embedded stack is described there.`,
      `start one, give its directory with --data DIR, or use --url with ${TOKEN_VARIABLE}`,
    );
  const { api, core, webadmin, pids } = stackSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  const basic = Buffer.from(`${webadmin.username}:${webadmin.password}`).toString('base64');
  return {
    management: { url: api, authorization: `Basic ${basic}` },
    ...endpointOf(stream ?? core.streaming.replace(/^\w+:\/\//, '')),
    pids: pids.filter(({ role }) => role.startsWith('core')).map(({ pid }) => pid),
  };
}

function endpointOf(text: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (host === '') throw new UsageError(`--stream ${text} is not HOST:PORT`);
  return { host, port: Number(port) };
}

let ticks = 0;

/** CPU time of these processes so far, in seconds. */
export function cpuSeconds(pids: readonly number[]): number {
  ticks ||= Number(execFileSync('getconf', ['CLK_TCK']).toString());
  const each = pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticks;
  });
  return each.reduce((sum, value) => sum + value, 0);
}
