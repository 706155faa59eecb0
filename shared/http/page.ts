// Pages for people: one frame, one set of headers, and errors as pages where a browser asks for one. No page has a script.

import type { Context } from 'hono';
import { html } from 'hono/html';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { AppEnv } from './env.ts';

export const STYLE_PATH = '/sign-in/style.css';

const POLICY =
  "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; img-src data:";

/** HTML that is escaped already, as the tag `html` makes it. */
export type Markup = ReturnType<typeof html>;

export interface Page {
  title: string;
  body: Markup;
}

/**
 * Answers with a page that nothing keeps. With `no-referrer` browsers would send `Origin: null` with our own forms, which
 * the guard takes for another site: hence `same-origin`.
 */
export async function sendPage(c: Context<AppEnv>, { title, body }: Page, status: ContentfulStatusCode = 200) {
  c.header('Content-Security-Policy', POLICY);
  c.header('X-Content-Type-Options', 'nosniff');
  c.header('Referrer-Policy', 'same-origin');
  c.header('Cache-Control', 'no-store');
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} - Holdfast</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${STYLE_PATH}" />
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html> `;
  return c.html(page, status);
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

/** The status and the words of a problem document; a browser must not ask for a password by itself, so no challenge. */
async function errorPage(problem: Response, c: Context<AppEnv>): Promise<Response> {
  const { title, detail, status } = (await problem.json()) as { title: string; detail: string; status: number };
  const retryAfter = problem.headers.get('retry-after');
  if (retryAfter !== null) c.header('Retry-After', retryAfter);
  const body = html`<p role="alert">${detail}</p>
    ${status === 503 ? WHILE_AWAY : ''}
    <p><a href="/">Back to the start</a></p>
    <p class="fine">Request ${c.env.requestId}: the log has more under this number.</p>`;
  return sendPage(c, { title, body }, status as ContentfulStatusCode);
}

const WHILE_AWAY = html`<p>
  Try again in a minute. If it stays like this, somebody who can reach the machine should look at its logs, or ask what
  is wrong: <code>curl -u webadmin</code> with this address and <code>/api/health</code> works with the password of the
  settings also now.
</p>`;
