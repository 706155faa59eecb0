// Connects to the core with client certificates that we hold: Node's own TLS client, CoT in XML on
// the stream, and the query for the roles on 8443. Connections are held by a random id, for two
// minutes at most.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { z } from 'zod';
import { bareHost, urlsIn } from '@holdfast/kit/addresses';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import type { ClientKeys, CoreDevices, KeptKey, Met } from './port.ts';
import { type DevicePlace, openDeviceSocket, Refused, whyEnded } from './socket.ts';
import { DeviceStream } from './stream.ts';

const PATH = '/Marti/api/util/user/roles';
/** The first call after the start of a release can take more than five seconds. */
const WITHIN_MS = 10_000;
const MAX_LENGTH = 64 * 1024;
const rolesSchema = z.array(z.string());

/**
 * A release that has not restarted since its revocation list changed still completes the handshake
 * of a revoked certificate, and answers each request with this page. Seen on 5.7; matched as a
 * whole, because every other 500 is a fault and proves nothing.
 */
const REVOKED_PAGE = /(?:^|[>\s])Exception performing TAK Server authentication\.?(?=[<\s]|$)/;

/**
 * Returns the roles that 8443 reports to a client certificate, on a connection of its own.
 * Undefined when the core refuses the certificate. Rejects with Refused when it closes the
 * connection without a response; else with an AppError.
 */
export async function askRoles(socket: TLSSocket, place: DevicePlace): Promise<string[] | undefined> {
  const timer = setTimeout(
    () =>
      socket.destroy(
        new AppError('unavailable', `The core at ${place.name} does not answer within ${WITHIN_MS / 1000} s.`),
      ),
    WITHIN_MS,
  );
  try {
    const response = await answerOf(socket, place);
    const { statusCode = 0 } = response;
    if (statusCode === 401 || statusCode === 403) return undefined;
    const body = await textOf(response, place);
    if (statusCode === 500 && body !== undefined && isRevokedPage(body)) return undefined;
    const parsed = statusCode === 200 ? rolesSchema.safeParse(jsonOf(body)) : undefined;
    if (parsed?.success !== true)
      throw new AppError('upstream', `The core at ${place.name} answered ${PATH} with ${statusCode} and no roles.`);
    return parsed.data;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

async function answerOf(socket: TLSSocket, place: DevicePlace): Promise<IncomingMessage> {
  if (socket.closed) throw await whyEnded(place, socket.errored);
  const headers = { host: new URL(place.name).host, accept: 'application/json', connection: 'close' };
  const sent = request({ createConnection: () => socket, path: PATH, headers });
  sent.end();
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response;
  } catch (error) {
    if (error instanceof AppError) throw error;
    // A response that isn't HTTP is no refusal.
    if ((codeOf(error) ?? '').startsWith('HPE_'))
      throw new AppError('upstream', `The core at ${place.name} does not answer as a web server.`, { cause: error });
    throw await whyEnded(place, error);
  }
}

/** Undefined for a body that is too long. */
async function textOf(response: IncomingMessage, { name }: DevicePlace): Promise<string | undefined> {
  response.setEncoding('utf8');
  let text = '';
  try {
    for await (const piece of response) {
      text += String(piece);
      if (text.length > MAX_LENGTH) return undefined;
    }
    return text;
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('unavailable', `The core at ${name} closed the connection in the middle of its response.`, {
      cause: error,
    });
  }
}

/** Matched by the page's body: its content type claims JSON when JSON was requested. */
function isRevokedPage(text: string): boolean {
  return /^\s*<(?:!doctype html|html)/i.test(text) && REVOKED_PAGE.test(text);
}

/** Undefined for anything but JSON. */
function jsonOf(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface CoreDevicesOptions {
  apiUrl: string | undefined;
  streamingUrl: string | undefined;
  /** Read again each time. */
  caFile: string;
  clientKeys: Pick<ClientKeys, 'read'>;
  /** How long a connection stays open when no caller closes it; default two minutes. */
  heldForMs?: number;
}

const MET_WITHIN_MS = 5_000;
const ANSWERS_WITHIN_MS = 3_000;
const HELD_FOR_MS = 120_000;
const MAX_HELD = 50;
const STREAMING_PORT = 8089;
const API_PORT = 443;

export class TlsCoreDevices implements CoreDevices {
  readonly #apiUrl: CoreDevicesOptions['apiUrl'];
  readonly #streamingUrl: CoreDevicesOptions['streamingUrl'];
  readonly #caFile: CoreDevicesOptions['caFile'];
  readonly #clientKeys: CoreDevicesOptions['clientKeys'];
  readonly #heldForMs: NonNullable<CoreDevicesOptions['heldForMs']>;
  readonly #held = new Map<string, DeviceStream>();
  /** Includes those that are not accepted yet. */
  #open = 0;

  constructor(options: CoreDevicesOptions) {
    this.#apiUrl = options.apiUrl;
    this.#streamingUrl = options.streamingUrl;
    this.#caFile = options.caFile;
    this.#clientKeys = options.clientKeys;
    this.#heldForMs = options.heldForMs ?? HELD_FOR_MS;
  }

  async #keyOf(hash: string): Promise<KeptKey> {
    const key = await this.#clientKeys.read(hash);
    if (key === undefined) throw new AppError('not_found', `There is no stored key for the certificate ${hash}.`);
    return key;
  }

  /** At the first place that can be reached. */
  async #opened(places: readonly DevicePlace[], hash: string): Promise<{ place: DevicePlace; socket: TLSSocket }> {
    const key = await this.#keyOf(hash);
    const authority = await readAuthority(this.#caFile);
    const problems: AppError[] = [];
    for (const place of places) {
      try {
        return { place, socket: await openDeviceSocket(place, authority, key) };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        problems.push(error);
      }
    }
    const [first, ...others] = problems;
    if (first !== undefined && others.length === 0) throw first;
    throw new AppError('unavailable', problems.map(({ message }) => message).join(' '), { cause: first });
  }

  async #connected(places: readonly DevicePlace[], hash: string): Promise<Met> {
    const begunMs = performance.now();
    let streams = 0;
    try {
      const { place, socket } = await this.#opened(places, hash);
      const connection = crypto.randomUUID();
      streams = 1;
      const stream = new DeviceStream(socket, this.#heldForMs, () => {
        this.#held.delete(connection);
        this.#open -= 1;
      });
      if (await stream.ping(MET_WITHIN_MS)) {
        this.#held.set(connection, stream);
        return { connection, milliseconds: Math.round(performance.now() - begunMs) };
      }
      if (stream.ended !== undefined) throw await whyEnded(place, stream.ended.error);
      stream.close();
      return { refused: `the core sent nothing for ${MET_WITHIN_MS / 1000} s after the handshake` };
    } catch (error) {
      if (error instanceof Refused) return { refused: error.message };
      throw error;
    } finally {
      if (streams === 0) this.#open -= 1;
    }
  }

  async roles(hash: string): Promise<string[] | undefined> {
    const places = placesOf(this.#apiUrl, 'CORE_API_URL', API_PORT);
    try {
      const { place, socket } = await this.#opened(places, hash);
      return await askRoles(socket, place);
    } catch (error) {
      if (error instanceof Refused) return undefined;
      throw error;
    }
  }

  async connect(hash: string, at?: string): Promise<Met> {
    const places = placesOf(at ?? this.#streamingUrl, 'CORE_STREAMING_URL', STREAMING_PORT);
    if (this.#open >= MAX_HELD)
      throw new AppError('unavailable', `There are already ${MAX_HELD} open connections to the core. Try again later.`);
    this.#open += 1;
    return this.#connected(places, hash);
  }

  async answers(connection: string): Promise<boolean> {
    return (await this.#held.get(connection)?.ping(ANSWERS_WITHIN_MS)) ?? false;
  }

  async send(connection: string, event: string): Promise<void> {
    if (this.#held.get(connection)?.send(event) !== true)
      throw new AppError('unavailable', 'The connection to the core has closed.');
  }

  async received(connection: string, uid: string, withinMs: number): Promise<number | undefined> {
    return this.#held.get(connection)?.received(uid, withinMs);
  }

  async close(connection: string): Promise<void> {
    this.#held.get(connection)?.close();
  }
}

function placesOf(urls: string | undefined, variable: string, usual: number): DevicePlace[] {
  if (urls === undefined)
    throw new AppError('unavailable', `The core cannot be called for this. Remedy: set ${variable}.`);
  return urlsIn(urls).map((name) => {
    const { hostname, port } = new URL(name);
    return { name, host: bareHost(hostname), port: port === '' ? usual : Number(port) };
  });
}

async function readAuthority(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const why = codeOf(error) ?? messageOf(error);
    throw new AppError(
      'unavailable',
      `The CA certificate of the core cannot be read from ${file} (${why}). Remedy: set CORE_DATA_DIR to the directory of the core.`,
      { cause: error },
    );
  }
}
