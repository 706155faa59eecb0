// Pages for people: one document, one set of headers, and errors as pages where a browser asks for
// one. What a page loads is ours; no script and no style stands in it.

import type { Context } from 'hono';
import { html, raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { withoutDisguise } from '@holdfast/kit/text';
import { namesTag, weakEtag } from './answers.ts';
import type { AppEnv } from './context.ts';
import { withoutClock } from './text.ts';

export const STYLE_PATH = '/sign-in/style.css';
export const SCRIPT_PATH = '/sign-in/page.js';

/** Of what pages load: the build puts the hash of style and script here. */
declare const HOLDFAST_PAGES: string | undefined;
export const PAGES_VERSION = typeof HOLDFAST_PAGES === 'string' ? HOLDFAST_PAGES : 'source';

/** The content security policy of every page. */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

export interface Page {
  title: string;
  body: Child;
}

interface Document {
  title: string;
  /** All of the body. */
  content: Child;
  /** The class of the body: how wide it is, and what stands around the page. */
  kind: string;
  /** The origin of images that are not ours. */
  imagesFrom?: string | undefined;
}

/**
 * Answers with a page that nothing keeps; to `If-None-Match` that names its entity tag with 304.
 * With `no-referrer` browsers would send `Origin: null` with our own forms, which the guard takes
 * for another site: hence `same-origin`.
 */
export async function sendDocument(
  c: Context<AppEnv>,
  { title, content, kind, imagesFrom }: Document,
  status: ContentfulStatusCode = 200,
): Promise<Response> {
  const document = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} - Holdfast`}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={`${STYLE_PATH}?v=${PAGES_VERSION}`} />
        <script src={`${SCRIPT_PATH}?v=${PAGES_VERSION}`} defer></script>
      </head>
      <body class={kind}>{content}</body>
    </html>
  );
  // Devices and outside systems name themselves: none of them turns a sentence around.
  const text = withoutDisguise(String(await html`<!doctype html>${document}`));
  c.header(
    'Content-Security-Policy',
    imagesFrom === undefined ? PAGE_POLICY : PAGE_POLICY.replace('img-src', `img-src ${imagesFrom}`),
  );
  c.header('X-Content-Type-Options', 'nosniff');
  c.header('Referrer-Policy', 'same-origin');
  c.header('Cache-Control', 'no-store');
  const etag = await weakEtag(withoutClock(text));
  c.header('ETag', etag);
  const known = c.req.header('if-none-match');
  if (status === 200 && known !== undefined && namesTag(known, etag)) return c.body(null, 304);
  return c.html(raw(text), status);
}

/** A page with nothing around it: to sign in, and to say what went wrong. */
export async function sendPage(
  c: Context<AppEnv>,
  { title, body }: Page,
  status: ContentfulStatusCode = 200,
): Promise<Response> {
  const content = (
    <main>
      <h1>{title}</h1>
      {body}
    </main>
  );
  return sendDocument(c, { title, content, kind: 'plain' }, status);
}

/** Sends a browser on to a path of ours, by GET. */
export function goTo(c: Context<AppEnv>, path: string): Response {
  return c.text(`See ${path}\n`, 303, { Location: path, 'Cache-Control': 'no-store' });
}

type ErrorAnswer = (error: Error, c: Context<AppEnv>) => Promise<Response>;

/** Addresses of programs: they get problem documents whatever they accept. */
const PROGRAMS = /^\/(api|metrics|auth)(\/|$)/;

/** The error handler `answer`, with pages instead of problem documents for browsers on pages. */
export function withErrorPages(answer: ErrorAnswer) {
  return async function answerError(error: Error, c: Context<AppEnv>): Promise<Response> {
    const response = await answer(error, c);
    const wantsPage = /\btext\/html\b/i.test(c.req.header('accept') ?? '');
    return wantsPage && !PROGRAMS.test(c.req.path) ? errorPage(response, c) : response;
  };
}

/**
 * The status and the words of a problem document; a browser must not ask for a password by itself,
 * so no challenge.
 */
async function errorPage(problem: Response, c: Context<AppEnv>): Promise<Response> {
  const { title, detail, status } = (await problem.json()) as { title: string; detail: string; status: number };
  const retryAfter = problem.headers.get('retry-after');
  if (retryAfter !== null) c.header('Retry-After', retryAfter);
  const body = (
    <>
      <p role="alert">{detail}</p>
      {status === 503 ? <WhileUnavailable /> : null}
      <p>
        <a href="/">Back to start</a>
      </p>
      <p class="fine">Request {c.env.requestId}: search the log for this number.</p>
    </>
  );
  return sendPage(c, { title, body }, status as ContentfulStatusCode);
}

function WhileUnavailable() {
  return (
    <p>
      Try again in a minute. If it persists, ask someone with access to the machine to check its logs, or look for the
      cause: <code>curl -u webadmin</code> with this address and <code>/api/health</code> also works now, with the
      password of the settings.
    </p>
  );
}
