// A held connection to the stream: what has come on it, pings and their answers. It ends by itself.

import type { TLSSocket } from 'node:tls';
import { AppError } from '../domain/app-error.ts';
import { messageOf } from '../domain/thrown.ts';
import { type ArrivingEvent, arrivingEvents } from './arriving-events.ts';

export interface DeviceStream {
  /** Once it has ended, why; the error of the socket, or nothing when it was just closed. */
  readonly ended: { error: unknown } | undefined;
  /** True when every ping until now is answered in time. */
  ping(withinMs: number): Promise<boolean>;
  /** False when it has ended. */
  send(text: string): boolean;
  received(uid: string, withinMs: number): Promise<number | undefined>;
  close(): void;
}

const MOST_REMEMBERED = 10_000;
const LONGEST_UID = 256;

/** `onEnd` is called once, after `heldForMs` at the latest. */
export function deviceStream(socket: TLSSocket, heldForMs: number, onEnd: () => void): DeviceStream {
  const begunMs = performance.now();
  const events = arrivingEvents();
  /** When each uid came first, in milliseconds after the beginning. */
  const came = new Map<string, number>();
  const waiting = new Set<() => void>();
  let pings = 0;
  let pongs = 0;
  let ended: { error: unknown } | undefined;

  function keep({ type, uid }: ArrivingEvent): void {
    if (type === 't-x-c-t-r') pongs += 1;
    if (uid === '' || uid.length > LONGEST_UID || came.has(uid)) return;
    came.set(uid, performance.now() - begunMs);
    const [oldest] = came.keys();
    if (came.size > MOST_REMEMBERED && oldest !== undefined) came.delete(oldest);
  }

  function look(): void {
    for (const each of waiting) each();
  }

  socket.setEncoding('utf8');
  socket.on('data', (text: string) => {
    try {
      for (const event of events.read(text)) keep(event);
    } catch (error) {
      socket.destroy(new AppError('upstream', `The core sends ${messageOf(error)}.`));
    }
    look();
  });
  socket.on('end', () => socket.destroy());
  const timer = setTimeout(() => socket.destroy(), heldForMs);
  timer.unref();
  if (socket.closed) end();
  else socket.once('close', end);

  function end(): void {
    clearTimeout(timer);
    ended = { error: socket.errored };
    look();
    onEnd();
  }

  /** Resolves when `holds`, when the connection has ended, or when the time is over. */
  async function until(holds: () => boolean, withinMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = (): void => {
      if (holds() || ended !== undefined) resolve();
    };
    const late = setTimeout(resolve, withinMs);
    waiting.add(check);
    check();
    await promise;
    waiting.delete(check);
    clearTimeout(late);
    return holds();
  }

  function send(text: string): boolean {
    if (ended !== undefined || !socket.writable) return false;
    socket.write(text);
    return true;
  }

  return {
    get ended() {
      return ended;
    },
    async ping(withinMs) {
      if (!send(pingEvent())) return false;
      pings += 1;
      const mine = pings;
      return until(() => pongs >= mine, withinMs);
    },
    send,
    async received(uid, withinMs) {
      const calledMs = performance.now();
      const before = came.get(uid);
      if (before !== undefined) return Math.round(before);
      return (await until(() => came.has(uid), withinMs)) ? Math.round(performance.now() - calledMs) : undefined;
    },
    close: () => void socket.destroy(),
  };
}

function pingEvent(): string {
  const at = Date.now();
  const [time, stale] = [new Date(at).toISOString(), new Date(at + 20_000).toISOString()];
  return (
    `<event version="2.0" uid="holdfast-${crypto.randomUUID()}" type="t-x-c-t" how="m-g" ` +
    `time="${time}" start="${time}" stale="${stale}">` +
    '<point lat="0" lon="0" hae="0" ce="9999999" le="9999999"/><detail/></event>'
  );
}
