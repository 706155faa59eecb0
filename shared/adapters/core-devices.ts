// The core as somebody with a client certificate finds it: Node's own TLS client with the keys that we keep, CoT in XML on the
// stream, and the question for the roles on 8443. Connections are held by a random id, for two minutes at most.

import { readFile } from 'node:fs/promises';
import { AppError } from '../domain/app-error.ts';
import { codeOf, messageOf } from '../domain/thrown.ts';
import type { ClientKeys, KeptKey } from '../ports/client-keys.ts';
import type { CoreDevices, Met } from '../ports/core-devices.ts';
import { askRoles } from './device-roles.ts';
import { type DevicePlace, openDeviceSocket, Refused, whyEnded } from './device-socket.ts';
import { type DeviceStream, deviceStream } from './device-stream.ts';

export interface CoreDevicesOptions {
  apiUrl: string | undefined;
  streamingUrl: string | undefined;
  /** Read anew each time. */
  caFile: string;
  clientKeys: Pick<ClientKeys, 'read'>;
  /** How long a connection that nobody closes stays open; default two minutes. */
  heldForMs?: number;
}

const MET_WITHIN_MS = 5_000;
const ANSWERS_WITHIN_MS = 3_000;
const HELD_FOR_MS = 120_000;
const MOST_HELD = 50;
const STREAMING_PORT = 8089;
const API_PORT = 443;

export function coreDevices(options: CoreDevicesOptions): CoreDevices {
  const { apiUrl, streamingUrl, caFile, clientKeys, heldForMs = HELD_FOR_MS } = options;
  const held = new Map<string, DeviceStream>();
  /** Those that are not met yet, too. */
  let open = 0;

  async function keyOf(hash: string): Promise<KeptKey> {
    const key = await clientKeys.read(hash);
    if (key === undefined) throw new AppError('not_found', `No key is kept for the certificate ${hash}.`);
    return key;
  }

  async function opened(place: DevicePlace, hash: string) {
    const key = await keyOf(hash);
    return openDeviceSocket(place, await readAuthority(caFile), key);
  }

  async function connected(place: DevicePlace, hash: string): Promise<Met> {
    const begunMs = performance.now();
    let streams = 0;
    try {
      const socket = await opened(place, hash);
      const connection = crypto.randomUUID();
      streams = 1;
      const stream = deviceStream(socket, heldForMs, () => {
        held.delete(connection);
        open -= 1;
      });
      if (await stream.ping(MET_WITHIN_MS)) {
        held.set(connection, stream);
        return { connection, milliseconds: Math.round(performance.now() - begunMs) };
      }
      if (stream.ended !== undefined) throw await whyEnded(place, stream.ended.error);
      stream.close();
      return { refused: `the core said nothing for ${MET_WITHIN_MS / 1000} s after the handshake` };
    } catch (error) {
      if (error instanceof Refused) return { refused: error.message };
      throw error;
    } finally {
      if (streams === 0) open -= 1;
    }
  }

  return {
    async roles(hash) {
      const place = placeOf(apiUrl, 'CORE_API_URL', API_PORT);
      try {
        return await askRoles(await opened(place, hash), place);
      } catch (error) {
        if (error instanceof Refused) return undefined;
        throw error;
      }
    },
    async connect(hash) {
      const place = placeOf(streamingUrl, 'CORE_STREAMING_URL', STREAMING_PORT);
      if (open >= MOST_HELD)
        throw new AppError('unavailable', `${MOST_HELD} connections to the core are open already. Try again later.`);
      open += 1;
      return connected(place, hash);
    },
    answers: async (connection) => (await held.get(connection)?.ping(ANSWERS_WITHIN_MS)) ?? false,
    async send(connection, event) {
      if (held.get(connection)?.send(event) !== true)
        throw new AppError('unavailable', 'The connection to the core has ended.');
    },
    received: async (connection, uid, withinMs) => held.get(connection)?.received(uid, withinMs),
    async close(connection) {
      held.get(connection)?.close();
    },
  };
}

function placeOf(url: string | undefined, variable: string, usual: number): DevicePlace {
  if (url === undefined)
    throw new AppError('unavailable', `The core cannot be asked for this. Remedy: set ${variable}.`);
  const { hostname, port } = new URL(url);
  return { name: url, host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? usual : Number(port) };
}

async function readAuthority(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const why = codeOf(error) ?? messageOf(error);
    throw new AppError(
      'unavailable',
      `The CA certificate of the core cannot be read from ${file} (${why}). Remedy: let CORE_DATA_DIR be the directory of the core.`,
      { cause: error },
    );
  }
}
