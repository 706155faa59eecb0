// Asks for pages as a browser does that somebody has signed in with.

import { createApp } from '../../functions/app.ts';
import type { Bindings, Face } from '../../shared/http/context.ts';
import { type World, world } from '../health/fake-monitored.ts';
import { type FakeDeps, fakeDeps, PASSWORD } from '../http/fake-deps.ts';

const HERE = 'http://cot.example.org:8080';
const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };

/** Forms with a file, which is handed on as it comes. */
export const UPLOADS: ReadonlySet<string> = new Set(['/plugins/packages', '/profiles/:id/files']);

export interface Visitor {
  deps: FakeDeps;
  around: World;
  get: (path: string, headers?: Record<string, string>) => Promise<Response>;
  /** The HTML of a page; fails unless it is answered with `status`. */
  page: (path: string, status?: number) => Promise<string>;
  /** Sends a form; several values of one field as a list. */
  post: (path: string, fields?: Record<string, string | string[]>) => Promise<Response>;
  /** A form as other headers and another body would have it. */
  send: (path: string, headers: Record<string, string>, body: string) => Promise<Response>;
  /** A form over a line so slow that `meanwhile` happens while it comes. */
  /** `send` over such a line. */
  sendSlowly: (
    path: string,
    headers: Record<string, string>,
    body: string,
    meanwhile: () => Promise<void>,
  ) => Promise<Response>;
  postSlowly: (path: string, fields: Record<string, string>, meanwhile: () => Promise<void>) => Promise<Response>;
}

interface VisitOptions {
  username?: string | undefined;
  face?: Face;
  deps?: FakeDeps;
  around?: World;
}

/** Somebody at a face: `webadmin` (admin), `vera` (viewer), `nora` (no role), or nobody with `undefined`. */
export async function visit(options: VisitOptions = {}): Promise<Visitor> {
  const { face = 'console', around = world(), deps = fakeDeps({}, around) } = options;
  const username = 'username' in options ? options.username : 'webadmin';
  const app = createApp(deps);
  let cookie = '';
  const ask = async (
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<Response> => {
    const all = { accept: 'text/html', origin: HERE, ...(cookie === '' ? {} : { cookie }), ...headers };
    const request = new Request(HERE + path, { method, headers: all, ...(body === undefined ? {} : { body }) });
    return app.fetch(request, { ...CONNECTION, face });
  };
  const post = (path: string, fields: Record<string, string | string[]> = {}): Promise<Response> => {
    const pairs = Object.entries(fields).flatMap(([name, value]) =>
      [value].flat().map((each): [string, string] => [name, each]),
    );
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return ask('POST', path, type, new URLSearchParams(pairs).toString());
  };
  if (username !== undefined) {
    const answer = await post('/sign-in', { username, password: PASSWORD });
    cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  }
  const sendSlowly: Visitor['sendSlowly'] = async (path, own, text, meanwhile) => {
    const bytes = new TextEncoder().encode(text);
    // Asked for when somebody reads it, not before.
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          await meanwhile();
          controller.enqueue(bytes);
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { accept: 'text/html', origin: HERE, cookie, ...own };
    const request = new Request(HERE + path, { method: 'POST', headers, body, duplex: 'half' });
    return app.fetch(request, { ...CONNECTION, face });
  };
  const postSlowly: Visitor['postSlowly'] = (path, fields, meanwhile) => {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return sendSlowly(path, type, new URLSearchParams(fields).toString(), meanwhile);
  };
  return {
    deps,
    around,
    post,
    postSlowly,
    sendSlowly,
    send: (path, headers, body) =>
      ask('POST', path, { 'content-type': 'application/x-www-form-urlencoded', ...headers }, body),
    get: (path, headers = {}) => ask('GET', path, headers),
    page: async (path, status = 200) => {
      const answer = await ask('GET', path, {});
      const html = await answer.text();
      if (answer.status !== status) throw new Error(`GET ${path} answered ${answer.status}: ${html.slice(0, 2000)}`);
      return html;
    },
  };
}

const NO_PAGES = /^\/(api|metrics|auth|oauth|sign-in|sign-out)(\/|$)/;

/** The paths of all pages that are asked for like this, as they are routed. */
export function pagePaths(method: 'GET' | 'POST'): string[] {
  const routed = createApp(fakeDeps()).routes.filter((each) => each.method === method && !NO_PAGES.test(each.path));
  return [...new Set(routed.map(({ path }) => path))];
}

/** What can be read of a page, on one line. */
export function textOf(html: string): string {
  return html
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ([.,;:)])/g, '$1');
}
