// Serves /Marti/ErrorLog: devices send logs of their failures, administrators read them.

import { limitPerCaller } from '@holdfast/kit/concurrency';
import { readBody } from '@holdfast/kit/body';
import { contentDisposition, request } from '../files/query-parameters.ts';
import { CoreFault, emptyAnswer, PageFault, wrapped } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, invalid } from '../http/route.ts';
import type { ErrorLogStore } from '../store/error-logs.ts';

export interface ErrorLogOptions {
  /** In every wrapped answer: `readNodeId`. */
  nodeId: string;
  errorLogs: ErrorLogStore;
  now: () => Date;
}

/** Of the body: a log of 6 MB. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const MAX_AT_ONCE = { most: 8, maxPerOne: 1 };
const MAX_ID = 2 ** 31 - 1;

export class ErrorLogRoutes {
  readonly #options: ErrorLogOptions;
  readonly #running = limitPerCaller(MAX_AT_ONCE);

  constructor(options: ErrorLogOptions) {
    this.#options = options;
  }

  routes(): AdminRoute[] {
    return [
      {
        path: '/Marti/ErrorLog',
        handlers: {
          POST: (c) => this.#take(c),
          GET: (c) => this.#read(c),
          DELETE: (c) => this.#remove(c),
        },
      },
      { path: '/Marti/api/errorlogs', handlers: { GET: () => this.#list() } },
    ];
  }

  async #take(c: AdminContext): Promise<Response> {
    const named = (name: string): string => request(c, name) ?? '';
    const log = {
      uid: named('uid'),
      callsign: named('callsign'),
      username: c.env.caller.username,
      platform: named('platform'),
      majorVersion: named('majorVersion'),
      minorVersion: named('minorVersion'),
      time: this.#options.now(),
    };
    if (log.uid === '') throw invalid('uid is missing');
    const leave = this.#running.enter(c.env.caller.username);
    if (leave === undefined)
      throw new PageFault(503, 'Too many logs at once. Try again in a moment.', { headers: { 'retry-after': '10' } });
    try {
      const contents = await readLog(c);
      await this.#options.errorLogs.add({ ...log, filename: isZip(contents) ? 'log.zip' : 'log.txt', contents });
    } finally {
      leave();
    }
    return emptyAnswer();
  }

  async #list(): Promise<Response> {
    const all = await this.#options.errorLogs.list();
    const shown = all.map(({ time, ...log }) => ({ ...log, time: time.toISOString() }));
    return wrapped('ErrorLog', shown, this.#options.nodeId);
  }

  async #read(c: AdminContext): Promise<Response> {
    const id = idOf(c);
    const found = await this.#options.errorLogs.contents(id);
    if (found === undefined) throw new CoreFault('not found', `There is no log ${id}.`);
    return new Response(found.contents, {
      headers: {
        'content-type': 'application/octet-stream',
        'content-disposition': contentDisposition(`${id}_${found.filename}`),
        'x-content-type-options': 'nosniff',
      },
    });
  }

  async #remove(c: AdminContext): Promise<Response> {
    const id = idOf(c);
    if (!(await this.#options.errorLogs.remove(id))) throw new CoreFault('not found', `There is no log ${id}.`);
    return emptyAnswer();
  }
}

/** ATAK sends base64 with line breaks. */
async function readLog(c: AdminContext): Promise<Uint8Array> {
  const tooLarge = (): PageFault => new PageFault(413, `A log may have ${MAX_BODY_BYTES / 2 ** 20} MB at most.`);
  const text = Buffer.from(await readBody(c.req.raw.body, MAX_BODY_BYTES, tooLarge)).toString('latin1');
  const plain = text.replaceAll(/[\r\n ]/g, '');
  if (!BASE64.test(plain)) throw invalid('the body must be base64');
  return Buffer.from(plain, 'base64');
}

function isZip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x4b;
}

function idOf(c: AdminContext): number {
  const text = request(c, 'id') ?? '';
  const id = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= MAX_ID) return id;
  throw invalid('id must be the number of a log');
}
