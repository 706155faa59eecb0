// Lists containers through the HTTP API of a Docker Engine or a compatible runtime, with two kinds
// of GET only.

import { type ClientRequest, type IncomingMessage, request as overPlain, type RequestOptions } from 'node:http';
import { request as overTls } from 'node:https';
import { z } from 'zod';
import { bareHost } from '@holdfast/kit/addresses';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { readBodyText } from '@holdfast/kit/body';
import type { Container, Containers } from './port.ts';

const CONCURRENCY = 8;
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
const MAX_QUOTE = 160;
const ENDED = ['exited', 'dead', 'restarting'];
const KEPT = ['always', 'unless-stopped'];

/** An id becomes part of a path. */
const id = z.string().regex(/^\w[\w.-]{0,127}$/);
const summaries = z.array(z.object({ Id: id, Labels: z.record(z.string(), z.string()).nullish() }));
type Summary = z.infer<typeof summaries>[number];
type Details = z.infer<typeof details>;

const network = z.object({
  Aliases: z.array(z.string()).nullish(),
  DNSNames: z.array(z.string()).nullish(),
  IPAddress: z.string().nullish(),
  GlobalIPv6Address: z.string().nullish(),
});

const details = z.object({
  Name: z.string(),
  RestartCount: z.int().min(0).default(0),
  Config: z.object({ Image: z.string(), Hostname: z.string().nullish() }),
  Mounts: z.array(z.object({ Type: z.string(), Name: z.string().nullish(), Destination: z.string() })).nullish(),
  NetworkSettings: z.object({ Networks: z.record(z.string(), network.nullish()).nullish() }).nullish(),
  HostConfig: z.object({ RestartPolicy: z.object({ Name: z.string() }).nullish() }),
  State: z.object({
    Status: z.string(),
    ExitCode: z.int(),
    OOMKilled: z.boolean(),
    Health: z.object({ Status: z.string() }).nullish(),
  }),
});

interface Endpoint {
  place: string;
  request: (options: RequestOptions) => ClientRequest;
  options: RequestOptions;
}

type Answer = { status: number; text: string };

export interface ContainerRuntimeOptions {
  withinMs?: number;
  /** The Compose project of the stack. */
  project?: string;
  /** Other containers of the machine never count, even when the stack has none. */
  alone?: boolean;
}

/**
 * Lists the containers of the Compose project `project`, or all containers when none belongs to it.
 * `url` is unix:///path, http://, https:// or tcp:// (plain HTTP); `withinMs` limits a whole list.
 */
export function containerRuntime(
  url: string,
  { withinMs = 8_000, project = 'holdfast', alone = false }: ContainerRuntimeOptions = {},
): Containers {
  const endpoint = endpointOf(url);

  async function list(): Promise<Container[]> {
    const call = new AbortController();
    const timer = setTimeout(() => call.abort(new Error(`no answer within ${withinMs / 1000} s`)), withinMs);
    try {
      return await listWithin(endpoint, { project, alone }, call.signal);
    } catch (error) {
      throw error instanceof AppError ? error : noAnswer(endpoint, call.signal.reason ?? error);
    } finally {
      clearTimeout(timer);
      call.abort();
    }
  }

  return { list };
}

async function listWithin(
  endpoint: Endpoint,
  { project, alone }: { project: string; alone: boolean },
  signal: AbortSignal,
): Promise<Container[]> {
  const path = '/containers/json?all=1';
  const all = readAs(summaries, endpoint, path, await get(endpoint, path, signal));
  const ours = all.filter(({ Labels }) => Labels?.['com.docker.compose.project'] === project);
  const rest = (ours.length > 0 || alone ? ours : all).values();
  const containers: Container[] = [];
  const inspectRest = async (): Promise<void> => {
    for (const summary of rest) {
      const container = await inspect(endpoint, summary, signal);
      if (container !== undefined) containers.push(container);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, inspectRest));
  return containers.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Undefined when the container no longer exists. */
async function inspect(
  endpoint: Endpoint,
  { Id, Labels }: Summary,
  signal: AbortSignal,
): Promise<Container | undefined> {
  const path = `/containers/${Id}/json`;
  const answer = await get(endpoint, path, signal);
  if (answer.status === 404) return undefined;
  const read = readAs(details, endpoint, path, answer);
  const { Name, Config, HostConfig, State, RestartCount, Mounts } = read;
  return {
    name: Name.replace(/^\//, ''),
    image: Config.Image,
    state: State.Status,
    // The engine reports a container that it doesn't check at the moment (paused, exited) as
    // unhealthy.
    health: State.Status === 'running' ? healthOf(State.Health?.Status) : undefined,
    exit_code: ENDED.includes(State.Status) ? State.ExitCode : undefined,
    kept_running: KEPT.includes(HostConfig.RestartPolicy?.Name ?? ''),
    out_of_memory: State.OOMKilled,
    restarts: RestartCount,
    // The engine returns them in no particular order.
    mounts: (Mounts ?? [])
      .map(({ Type, Name: volume, Destination }) => ({
        destination: Destination,
        type: Type,
        ...(volume ? { name: volume } : {}),
      }))
      .toSorted((one, other) => (one.destination < other.destination ? -1 : 1)),
    hosts: hostsOf(read, Labels?.['com.docker.compose.service']),
  };
}

function hostsOf({ Name, Config, NetworkSettings }: Details, service: string | undefined): string[] {
  const networks = Object.values(NetworkSettings?.Networks ?? {}).flatMap((each) => [
    ...(each?.Aliases ?? []),
    ...(each?.DNSNames ?? []),
    each?.IPAddress,
    each?.GlobalIPv6Address,
  ]);
  const names = [Name.replace(/^\//, ''), service, Config.Hostname, ...networks];
  return [...new Set(names.flatMap((each) => each || []))];
}

function healthOf(word: string | undefined): Container['health'] {
  return word === 'healthy' || word === 'unhealthy' || word === 'starting' ? word : undefined;
}

function endpointOf(text: string): Endpoint {
  const { protocol, hostname, port, pathname } = new URL(text);
  if (protocol === 'unix:') {
    const socketPath = decodeURIComponent(pathname);
    return { place: `unix://${socketPath}`, request: overPlain, options: { socketPath } };
  }
  const request = protocol === 'https:' ? overTls : overPlain;
  const number = port || { 'https:': '443', 'http:': '80' }[protocol] || '2375';
  const options = { hostname: bareHost(hostname), port: number };
  return { place: `${protocol}//${hostname}:${number}`, request, options };
}

function get(endpoint: Endpoint, path: string, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { Accept: 'application/json' };
    endpoint
      .request({ ...endpoint.options, method: 'GET', path, headers, signal, agent: false })
      .on('response', (response) => resolve(bodyOf(endpoint, path, response)))
      .on('error', (error) => {
        const isNotHttp = codeOf(error)?.startsWith('HPE_') ?? false;
        reject(isNotHttp ? wrongAnswer(endpoint, path, `something other than HTTP (${messageOf(error)})`) : error);
      })
      .end();
  });
}

async function bodyOf(endpoint: Endpoint, path: string, response: IncomingMessage): Promise<Answer> {
  const tooLarge = (): Error => wrongAnswer(endpoint, path, `more than ${MAX_ANSWER_BYTES} bytes`);
  return { status: response.statusCode ?? 0, text: await readBodyText(response, MAX_ANSWER_BYTES, tooLarge) };
}

function readAs<T>(schema: z.ZodType<T>, endpoint: Endpoint, path: string, { status, text }: Answer): T {
  if (status !== 200) throw wrongAnswer(endpoint, path, `status ${status}: ${quoted(text)}`, remedyFor(status));
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw wrongAnswer(endpoint, path, `something other than JSON: ${quoted(text)}`);
  }
  const read = schema.safeParse(json);
  if (read.success) return read.data;
  // The response itself is not quoted: it may contain a container's environment, with its
  // passwords.
  const [issue] = read.error.issues;
  throw wrongAnswer(
    endpoint,
    path,
    `JSON of another shape (${issue?.path.join('.') || 'the response'}: ${issue?.message})`,
  );
}

function quoted(text: string): string {
  const shown = text.slice(0, MAX_QUOTE).replaceAll(/[\s\p{C}]+/gu, ' ');
  return shown.trim() === '' ? 'nothing' : `${shown.trim()}${text.length > MAX_QUOTE ? ' ...' : ''}`;
}

function remedyFor(status: number): string | undefined {
  if (status === 401 || status === 403) return 'If a proxy guards the socket, allow GET on /containers there.';
  return status >= 500 ? 'Check its log.' : undefined;
}

function wrongAnswer(
  { place }: Endpoint,
  path: string,
  what: string,
  remedy = 'Set CONTAINER_RUNTIME_URL to a Docker Engine or a runtime with the same HTTP API.',
): AppError {
  return new AppError('upstream', `The container runtime at ${place} answered GET ${path} with ${what}. ${remedy}`);
}

function noAnswer({ place, options: { socketPath } }: Endpoint, cause: unknown): AppError {
  const code = codeOf(cause);
  if (code === 'EACCES' && socketPath !== undefined) {
    const remedy = `Add this user to the group that owns the socket (ls -l ${socketPath}) and restart Holdfast.`;
    const user = `The user with uid ${process.getuid?.()}`;
    return unavailable(`${user} isn't allowed to open the container runtime's socket, ${place}. ${remedy}`, cause);
  }
  const reason = code === 'ENOENT' ? 'the socket does not exist' : quoted(messageOf(cause) || String(code));
  const remedy = 'Start the container runtime, or correct CONTAINER_RUNTIME_URL.';
  return unavailable(`The container runtime at ${place} does not answer: ${reason}. ${remedy}`, cause);
}

function unavailable(message: string, cause: unknown): AppError {
  return new AppError('unavailable', message, { cause });
}
