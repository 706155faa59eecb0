// What 8443 says of whoever asks with a client certificate, on a connection of its own.

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import { codeOf } from '../domain/thrown.ts';
import { type DevicePlace, whyEnded } from './device-socket.ts';

const PATH = '/Marti/api/util/user/roles';
/** The first call after the start of a release can take more than five seconds. */
const WITHIN_MS = 10_000;
const LONGEST = 64 * 1024;
const rolesSchema = z.array(z.string());

/**
 * A release that has not restarted since its revocation list changed still completes the handshake of a revoked certificate, and
 * answers each request with this page. Seen on 5.7; matched as a whole, because every other 500 is a fault and proves nothing.
 */
const REVOKED_PAGE = /(?:^|[>\s])Exception performing TAK Server authentication\.?(?=[<\s]|$)/;

/** Undefined when the core refuses the certificate. Rejects with Refused when it ends the connection without an answer; else an AppError. */
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

/** Undefined for a body that is too long. */
async function textOf(response: IncomingMessage, { name }: DevicePlace): Promise<string | undefined> {
  response.setEncoding('utf8');
  let text = '';
  try {
    for await (const piece of response) {
      text += String(piece);
      if (text.length > LONGEST) return undefined;
    }
    return text;
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('unavailable', `The core at ${name} ended the connection in the middle of its answer.`, {
      cause: error,
    });
  }
}

/** Judged by the page itself: its content type says JSON when JSON was asked for. */
function isRevokedPage(text: string): boolean {
  return /^\s*<(?:!doctype html|html)/i.test(text) && REVOKED_PAGE.test(text);
}

/** Undefined for what is no JSON. */
function jsonOf(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
