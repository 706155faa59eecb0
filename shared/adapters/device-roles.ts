// What 8443 says of whoever asks with a client certificate, on a connection of its own.

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import { codeOf } from '../domain/thrown.ts';
import { type DevicePlace, whyEnded } from './device-socket.ts';

const PATH = '/Marti/api/util/user/roles';
const WITHIN_MS = 5_000;
const LONGEST = 64 * 1024;
const rolesSchema = z.array(z.string());

/** Undefined for 401 and 403. Rejects with Refused when the core ends the connection without an answer; else an AppError. */
export async function askRoles(socket: TLSSocket, place: DevicePlace): Promise<string[] | undefined> {
  const timer = setTimeout(
    () => socket.destroy(new AppError('unavailable', `The core at ${place.name} does not answer within 5 s.`)),
    WITHIN_MS,
  );
  try {
    const response = await answerOf(socket, place);
    const { statusCode = 0 } = response;
    if (statusCode === 401 || statusCode === 403) return undefined;
    const parsed = statusCode === 200 ? rolesSchema.safeParse(await bodyOf(response, place)) : undefined;
    if (parsed?.success !== true)
      throw new AppError('upstream', `The core at ${place.name} answers ${PATH} with ${statusCode} and no roles.`);
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
    // What is no HTTP is no refusal.
    if ((codeOf(error) ?? '').startsWith('HPE_'))
      throw new AppError('upstream', `The core at ${place.name} does not answer as a web server.`, { cause: error });
    throw await whyEnded(place, error);
  }
}

/** JSON, or undefined for what is none. */
async function bodyOf(response: IncomingMessage, { name }: DevicePlace): Promise<unknown> {
  response.setEncoding('utf8');
  let text = '';
  try {
    for await (const piece of response) {
      text += String(piece);
      if (text.length > LONGEST) return undefined;
    }
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('unavailable', `The core at ${name} ended the connection in the middle of its answer.`, {
      cause: error,
    });
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
