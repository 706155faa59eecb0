// Gives read-only access to the container engine, for the containers of one Compose project. The
// engine's socket means root on the machine: so nothing is passed through, every request and answer
// is rebuilt.

import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { z } from 'zod';
import { readBodyText } from '@holdfast/kit/body';
import { jsonLog } from '@holdfast/kit/log';
import { leave, stopInOrder } from '@holdfast/kit/service';

/** Marks the containers of a stack. */
export const PROJECT_LABEL = 'com.docker.compose.project';
const SERVICE_LABEL = 'com.docker.compose.service';

const labels = z.object({ [PROJECT_LABEL]: z.string().optional(), [SERVICE_LABEL]: z.string().optional() });

const network = z.object({
  Aliases: z.array(z.string()).nullish(),
  DNSNames: z.array(z.string()).nullish(),
  IPAddress: z.string().nullish(),
  GlobalIPv6Address: z.string().nullish(),
});

/**
 * The only members of an engine's answer that are returned: above all no environment, command or
 * host path.
 */
export const listAnswer = z.array(z.object({ Id: z.string(), Labels: labels.nullish() }));

export const containerAnswer = z.object({
  Id: z.string(),
  Name: z.string(),
  RestartCount: z.number().optional(),
  Config: z.object({ Image: z.string(), Hostname: z.string().nullish(), Labels: labels.nullish() }),
  Mounts: z.array(z.object({ Type: z.string(), Name: z.string().nullish(), Destination: z.string() })).nullish(),
  NetworkSettings: z.object({ Networks: z.record(z.string(), network.nullish()).nullish() }).nullish(),
  HostConfig: z.object({ RestartPolicy: z.object({ Name: z.string() }).nullish() }),
  State: z.object({
    Status: z.string(),
    ExitCode: z.number(),
    OOMKilled: z.boolean(),
    Health: z.object({ Status: z.string() }).nullish(),
  }),
});

type Labelled = { Labels?: z.infer<typeof labels> | null | undefined };

export function isOf(project: string, { Labels }: Labelled): boolean {
  return Labels?.[PROJECT_LABEL] === project;
}

/** The allowed requests: three kinds of GET. Everything else is refused, in any spelling. */
export type ContainerQuestion =
  | { kind: 'ping' }
  /** `labels`: additional filters. */
  | { kind: 'list'; all: boolean; labels: string[] }
  | { kind: 'inspect'; id: string };

const MAX_TARGET_LENGTH = 4096;
const VERSION = /^\/v1\.\d{1,3}(?=\/)/;
const INSPECT = /^\/containers\/([0-9a-f]{12,64})\/json$/;
const ALL: Record<string, boolean> = { '1': true, true: true, '0': false, false: false };
/** A list, or the form of older clients. */
const filters = z.strictObject({
  label: z
    .union([z.array(z.string()), z.record(z.string(), z.boolean()).transform((each) => Object.keys(each))])
    .optional(),
});

/** Undefined if the request isn't allowed. `target`: the request target as received. */
export function questionIn(target: string): ContainerQuestion | undefined {
  // Only one spelling is accepted: nothing is decoded before it is compared.
  if (target.length > MAX_TARGET_LENGTH || !/^\/[!-~]*$/.test(target) || target.includes('#')) return undefined;
  const [whole = '', query, more] = target.split('?');
  const path = whole.replace(VERSION, '');
  if (more !== undefined) return undefined;
  if (path === '/containers/json') return listIn(new URLSearchParams(query));
  if (query !== undefined) return undefined;
  if (path === '/_ping') return { kind: 'ping' };
  const id = INSPECT.exec(path)?.[1];
  return id === undefined ? undefined : { kind: 'inspect', id };
}

function listIn(query: URLSearchParams): ContainerQuestion | undefined {
  const names = [...query.keys()];
  if (names.some((name) => name !== 'all' && name !== 'filters') || new Set(names).size < names.length)
    return undefined;
  const all = ALL[query.get('all') ?? '0'];
  const labels = labelsIn(query.get('filters') ?? '{}');
  return all === undefined || labels === undefined ? undefined : { kind: 'list', all, labels };
}

function labelsIn(text: string): string[] | undefined {
  try {
    const read = filters.safeParse(JSON.parse(text));
    return read.success ? (read.data.label ?? []) : undefined;
  } catch {
    return undefined;
  }
}

export interface ContainerProxyOptions {
  /** Path of the engine's socket. */
  socket: string;
  /** The Compose project whose containers may be seen. */
  project: string;
  /** Called for each refused request. */
  refused: (refusal: ProxyRefusal) => void;
  /** Time limit for the engine; default 10 s. */
  withinMs?: number;
}

export interface ProxyRefusal {
  status: number;
  method: string;
  /** As received; at most 200 characters. */
  target: string;
  /** Of the client. */
  address: string;
}

interface EngineAnswer {
  status: number;
  text: string;
}

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
const MAX_HEADER_BYTES = 8 * 1024;
const MAX_CONNECTIONS = 64;
const REQUEST_WITHIN_MS = 5_000;
const LOGGED_CHARACTERS = 200;

/**
 * Creates the server, not listening yet. One request per connection, without body, upgrade or
 * tunnel.
 */
export function containerProxy({ socket, project, refused, withinMs = 10_000 }: ContainerProxyOptions): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: REQUEST_WITHIN_MS,
    requestTimeout: REQUEST_WITHIN_MS,
    connectionsCheckingInterval: 1_000,
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = 1;

  function refuse(incoming: IncomingMessage, status: number): void {
    const { method = '', url = '', socket: asking } = incoming;
    const target = url.slice(0, LOGGED_CHARACTERS);
    refused({ status, method: method.slice(0, 20), target, address: asking.remoteAddress ?? '' });
  }

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const status = faultOf(incoming);
    const question = status === undefined ? questionIn(incoming.url ?? '') : undefined;
    if (question === undefined) {
      refuse(incoming, status ?? 403);
      send(response, status ?? 403, { message: WORDS[status ?? 403] });
      return;
    }
    const { status: given, body } = await replyTo(question);
    send(response, given, body);
  }

  async function replyTo(question: ContainerQuestion): Promise<{ status: number; body: unknown }> {
    const { status, text } = await askEngine(socket, pathOf(question, project), withinMs);
    if (status === 404 && question.kind === 'inspect') return NOT_FOUND;
    if (status !== 200) return { status: 502, body: { message: `The container engine returned ${status}.` } };
    if (question.kind === 'ping') return { status, body: 'OK' };
    const json: unknown = JSON.parse(text);
    if (question.kind === 'list')
      return { status, body: listAnswer.parse(json).filter((container) => isOf(project, container)) };
    const container = containerAnswer.parse(json);
    return isOf(project, container.Config) ? { status, body: container } : NOT_FOUND;
  }

  server.on('request', (incoming: IncomingMessage, response: ServerResponse) => {
    answer(incoming, response).catch((error: unknown) => {
      send(response, 502, { message: `Couldn't read the answer of the container engine: ${reasonOf(error)}.` });
    });
  });
  for (const event of ['checkContinue', 'checkExpectation'] as const)
    server.on(event, (incoming: IncomingMessage, response: ServerResponse) => {
      refuse(incoming, 400);
      send(response, 400, { message: WORDS[400] });
    });
  for (const event of ['upgrade', 'connect'] as const)
    server.on(event, (incoming: IncomingMessage, stream: Socket) => {
      refuse(incoming, 403);
      hangUp(stream, '403 Forbidden');
    });
  server.on('clientError', (_, stream: Socket) => {
    refused({ status: 400, method: '', target: 'no HTTP', address: stream.remoteAddress ?? '' });
    hangUp(stream, '400 Bad Request');
  });
  return server;
}

const NOT_FOUND = { status: 404, body: { message: 'No such container in this project.' } };
const WORDS: Record<number, string> = {
  400: 'Requests must have no body and no Expect header.',
  403: 'Not allowed. Only /_ping, /containers/json and /containers/ID/json are.',
  405: 'Only GET is allowed.',
};

/** Closes the connection even if the client doesn't, so that it doesn't block others. */
function hangUp(stream: Socket, status: string): void {
  stream.on('error', () => undefined);
  stream.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  stream.destroySoon();
}

/** Undefined for a GET without a body. */
function faultOf({ method, headers }: IncomingMessage): number | undefined {
  if (method !== 'GET') return 405;
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  return hasBody ? 400 : undefined;
}

function pathOf(question: ContainerQuestion, project: string): string {
  if (question.kind === 'ping') return '/_ping';
  if (question.kind === 'inspect') return `/containers/${question.id}/json`;
  const label = [`${PROJECT_LABEL}=${project}`, ...question.labels];
  const query = new URLSearchParams({ all: question.all ? '1' : '0', filters: JSON.stringify({ label }) });
  return `/containers/json?${query.toString()}`;
}

function askEngine(socketPath: string, path: string, withinMs: number): Promise<EngineAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(withinMs);
    request({ socketPath, path, headers: { host: 'engine' }, agent: false, signal })
      .on('response', (response) => void answerOf(response).then(resolve, reject))
      .on('error', reject)
      .end();
  });
}

async function answerOf(response: IncomingMessage): Promise<EngineAnswer> {
  const tooLarge = (): Error => new Error(`more than ${MAX_ANSWER_BYTES} bytes`);
  return { status: response.statusCode ?? 0, text: await readBodyText(response, MAX_ANSWER_BYTES, tooLarge) };
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const isText = typeof body === 'string';
  const text = isText ? body : JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': isText ? 'text/plain; charset=utf-8' : 'application/json',
    'Content-Length': Buffer.byteLength(text),
    Connection: 'close',
    ...(status === 405 ? { Allow: 'GET' } : {}),
  });
  response.end(text);
}

/** Never quotes the answer, which may contain what must not be passed on. */
function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return `unexpected member ${error.issues[0]?.path.join('.') || '(all)'}`;
  if (error instanceof SyntaxError) return 'it is not JSON';
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? error.name) : 'unknown';
}

/** Mounted by compose.runtime.yaml. */
const SOCKET = '/var/run/docker.sock';
const PORT = 2375;
const PROJECT = 'holdfast';

/** The role `container-proxy` of our image, until SIGTERM or SIGINT. */
export function runContainerProxy(environment: NodeJS.ProcessEnv): void {
  const log = jsonLog({ role: 'container-proxy' });
  const project = environment['COMPOSE_PROJECT_NAME']?.trim() || PROJECT;
  const server = containerProxy({
    socket: SOCKET,
    project,
    refused: (refusal) => log.warn('container-proxy.refused', { ...refusal }),
  });
  server.on('error', (error) => {
    log.error('container-proxy.failed', { error: error.message });
    leave(log, 1);
  });
  server.listen(PORT, '0.0.0.0', () => log.info('container-proxy.listening', { port: PORT, socket: SOCKET, project }));
  stopInOrder(log, 'container-proxy', async () => undefined);
}
