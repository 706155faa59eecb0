// Carries the stream over WebSocket (/takproto/1): the frames of protobuf, one in each message.

import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { isOfForeignPage } from '../http/answers.ts';
import type { Arrival } from '../model/parts.ts';
import type { StreamArrival } from '../model/stream.ts';
import { MAGIC } from './wire/frames.ts';

export const WEBSOCKET_PATH = '/takproto/1';

/** An event of 8 MB, and its header. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024 + 16;
/** Longer than the longest header: 0xBF and five bytes. */
const MAX_HEADER_BYTES = 6;
const UNSUPPORTED = 1003;

/** Takes the connections of an HTTP port that ask for a WebSocket. */
export class WebSockets {
  readonly #accepted: (arrival: StreamArrival) => void;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });

  constructor(accepted: (arrival: StreamArrival) => void) {
    this.#accepted = accepted;
  }

  /** `head` is what has come behind the request. */
  upgrade(incoming: IncomingMessage, head: Buffer, arrival: Arrival): void {
    const { socket } = arrival;
    const status = refusalOf(incoming, arrival);
    if (status !== undefined) {
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.#server.handleUpgrade(incoming, socket, head, (webSocket) =>
      this.#accepted({ ...arrival, socket: new FrameSocket(webSocket), framing: 'protobuf' }),
    );
  }
}

function refusalOf({ url = '', headers }: IncomingMessage, { known }: Arrival): string | undefined {
  if (known === undefined) return '401 Unauthorized';
  if (url.split('?', 1)[0] !== WEBSOCKET_PATH) return '404 Not Found';
  const given = new Headers();
  for (const name of ['origin', 'sec-fetch-site'])
    if (headers[name] !== undefined) given.set(name, String(headers[name]));
  // A page of another site must not use the certificate of a browser.
  return isForeign({ headers: given, url: `https://${headers.host ?? ''}/` }) ? '403 Forbidden' : undefined;
}

function isForeign(request: Pick<Request, 'headers' | 'url'>): boolean {
  try {
    return isOfForeignPage(request, { secure: true });
  } catch {
    // A Host header that no URL can be made of.
    return true;
  }
}

/** Messages in, whole frames out. What is lent to a write is in use until its callback. */
class FrameSocket extends Duplex {
  readonly #webSocket: WebSocket;
  /** The beginning of a frame whose rest has not been written yet. */
  #rest: Buffer = Buffer.alloc(0);

  constructor(webSocket: WebSocket) {
    super({ allowHalfOpen: true });
    this.#webSocket = webSocket;
    // A write that fails says so here too, and would otherwise end the process.
    this.on('error', () => this.destroy());
    webSocket.on('message', (data, isBinary) => {
      if (!isBinary) webSocket.close(UNSUPPORTED, 'Text is not supported.');
      else if (!this.push(data)) webSocket.pause();
    });
    webSocket.on('error', (error) => this.destroy(error));
    webSocket.on('close', () => {
      this.push(null);
      this.destroy();
    });
  }

  override _read(): void {
    if (this.#webSocket.readyState === this.#webSocket.OPEN) this.#webSocket.resume();
  }

  override _write(chunk: Buffer, _: string, done: (error?: Error | null) => void): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const ends = frameEnds(bytes);
    const last = ends.at(-1) ?? 0;
    // A copy: the chunk is lent.
    this.#rest = Buffer.from(bytes.subarray(last));
    if (last === 0) return done();
    let from = 0;
    for (const end of ends) {
      const frame = bytes.subarray(from, end);
      from = end;
      if (end === last) this.#webSocket.send(frame, { binary: true }, done);
      else this.#webSocket.send(frame, { binary: true });
    }
  }

  override _final(done: () => void): void {
    this.#webSocket.close();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#webSocket.terminate();
    done(error);
  }
}

/** Where each whole frame ends. Throws a TypeError for what is no frame: it comes from here. */
function frameEnds(bytes: Buffer): number[] {
  const ends: number[] = [];
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] !== MAGIC) throw new TypeError('a frame of the stream does not begin with 0xBF');
    let length = 0;
    let head = 1;
    while (head < MAX_HEADER_BYTES && ((bytes[at + head] ?? 0) & 0x80) !== 0)
      length += ((bytes[at + head] ?? 0) & 0x7f) * 128 ** (head++ - 1);
    if (at + head >= bytes.length) break;
    length += (bytes[at + head] ?? 0) * 128 ** (head - 1);
    at += head + 1 + length;
    if (at > bytes.length) break;
    ends.push(at);
  }
  return ends;
}
