// Holds one connection to the stream: incoming events, pings and their replies. It closes by
// itself.

import type { TLSSocket } from 'node:tls';
import { AppError, messageOf } from '@holdfast/kit/app-error';

/**
 * Extracts CoT events from a stream: `<event` to `</event>`, whatever is between them. Only the
 * type and the uid are read, and only the start of an event is kept.
 */
export interface ArrivingEvent {
  type: string;
  uid: string;
}

export interface ArrivingEvents {
  /** The events that end in this chunk. Throws when one gets too long. */
  read(text: string): ArrivingEvent[];
}

const START = '<event';
const END = '</event>';
/** As the core has it. */
const MAX_LENGTH = 8 * 1024 * 1024;
const MAX_START_MS = 16 * 1024;
const ATTRIBUTE = /\s+([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/y;
const BLANK_OR_END = /[\s/>]/;

export function arrivingEvents(longest = MAX_LENGTH): ArrivingEvents {
  /** The start of the incoming event; undefined between events. */
  let begun: string | undefined;
  let length = 0;
  /** Too few bytes to recognize it. */
  let rest = '';

  function append(text: string): string {
    length += text.length;
    if (length > longest) throw new Error(`an event of more than ${longest} characters`);
    begun = `${begun ?? ''}${text.slice(0, MAX_START_MS - (begun?.length ?? 0))}`;
    return begun;
  }

  function toStart(): boolean {
    const at = startIn(rest);
    if (at === undefined) {
      rest = half(rest);
      return false;
    }
    rest = rest.slice(at);
    begun = '';
    length = 0;
    return true;
  }

  function toEnd(): ArrivingEvent | undefined {
    const at = rest.indexOf(END);
    const upTo = at < 0 ? Math.max(0, rest.length - END.length + 1) : at;
    const event = append(rest.slice(0, upTo));
    rest = rest.slice(at < 0 ? upTo : at + END.length);
    if (at < 0) return undefined;
    begun = undefined;
    return readStart(event);
  }

  return {
    read(text) {
      rest += text;
      const events: ArrivingEvent[] = [];
      while (begun !== undefined || toStart()) {
        const event = toEnd();
        if (event === undefined) break;
        events.push(event);
      }
      return events;
    },
  };
}

function startIn(text: string): number | undefined {
  for (let at = text.indexOf(START); at >= 0; at = text.indexOf(START, at + 1))
    if (BLANK_OR_END.test(text[at + START.length] ?? '')) return at;
  return undefined;
}

/** May become a start when more bytes arrive. */
function half(text: string): string {
  const at = text.lastIndexOf('<');
  return at >= 0 && START.startsWith(text.slice(at)) ? text.slice(at) : '';
}

function readStart(event: string): ArrivingEvent {
  const attributes = new Map<string, string>();
  ATTRIBUTE.lastIndex = START.length;
  for (let found = ATTRIBUTE.exec(event); found !== null; found = ATTRIBUTE.exec(event))
    attributes.set(found[1] ?? '', found[2] ?? found[3] ?? '');
  return { type: attributes.get('type') ?? '', uid: attributes.get('uid') ?? '' };
}

const MAX_REMEMBERED = 10_000;
const MAX_UID_LENGTH = 256;

/** `onEnd` is called once, after `heldForMs` at the latest. */
export class DeviceStream {
  readonly #socket: TLSSocket;
  readonly #onEnd: () => void;
  readonly #begunMs = performance.now();
  readonly #events = arrivingEvents();
  /** When each uid first arrived, in milliseconds after the beginning. */
  readonly #came = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  #pings = 0;
  #pongs = 0;
  #ended: { error: unknown } | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(socket: TLSSocket, heldForMs: number, onEnd: () => void) {
    this.#socket = socket;
    this.#onEnd = onEnd;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      try {
        for (const event of this.#events.read(text)) this.#keep(event);
      } catch (error) {
        socket.destroy(new AppError('upstream', `The core sent ${messageOf(error)}.`));
      }
      this.#look();
    });
    socket.on('end', () => socket.destroy());
    this.#timer = setTimeout(() => socket.destroy(), heldForMs);
    this.#timer.unref();
    if (socket.closed) this.#end();
    else socket.once('close', () => this.#end());
  }

  #keep({ type, uid }: ArrivingEvent): void {
    if (type === 't-x-c-t-r') this.#pongs += 1;
    if (uid === '' || uid.length > MAX_UID_LENGTH || this.#came.has(uid)) return;
    this.#came.set(uid, performance.now() - this.#begunMs);
    const [oldest] = this.#came.keys();
    if (this.#came.size > MAX_REMEMBERED && oldest !== undefined) this.#came.delete(oldest);
  }

  #look(): void {
    for (const each of this.#waiting) each();
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#ended = { error: this.#socket.errored };
    this.#look();
    this.#onEnd();
  }

  /** Resolves when `holds`, when the connection has closed, or when the time is over. */
  async #until(holds: () => boolean, withinMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const check = (): void => {
      if (holds() || this.#ended !== undefined) resolve();
    };
    const late = setTimeout(resolve, withinMs);
    this.#waiting.add(check);
    check();
    await promise;
    this.#waiting.delete(check);
    clearTimeout(late);
    return holds();
  }

  /** False when it has closed. */
  send(text: string): boolean {
    if (this.#ended !== undefined || !this.#socket.writable) return false;
    this.#socket.write(text);
    return true;
  }

  /**
   * Once it has closed, the reason: the error of the socket, or undefined when it was just closed.
   */
  get ended(): { error: unknown } | undefined {
    return this.#ended;
  }

  /** True when every ping until now is answered in time. */
  async ping(withinMs: number): Promise<boolean> {
    if (!this.send(pingEvent())) return false;
    this.#pings += 1;
    const mine = this.#pings;
    return this.#until(() => this.#pongs >= mine, withinMs);
  }

  async received(uid: string, withinMs: number): Promise<number | undefined> {
    const calledMs = performance.now();
    const before = this.#came.get(uid);
    if (before !== undefined) return Math.round(before);
    return (await this.#until(() => this.#came.has(uid), withinMs))
      ? Math.round(performance.now() - calledMs)
      : undefined;
  }

  close(): void {
    this.#socket.destroy();
  }
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
