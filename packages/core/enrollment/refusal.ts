// Builds the HTML error pages with a status, like those of a TAK Server.

import { htmlPage } from '../http/answers.ts';

const TITLES: Record<RefusalStatus, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
};

export type RefusalStatus = 400 | 401 | 403 | 404 | 405 | 413 | 415 | 429 | 500 | 502 | 503;

/** The message is shown to the caller. */
export class Refusal extends Error {
  readonly status: RefusalStatus;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: RefusalStatus,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'Refusal';
    this.status = status;
    this.headers = headers;
  }
}

export function refusalResponse({ status, message, headers }: Refusal): Response {
  const page = htmlPage(status, TITLES[status], message);
  for (const [name, value] of Object.entries(headers)) page.headers.set(name, value);
  return page;
}

/**
 * 401 without a challenge, as a release answers: clients send name and password unasked, and no
 * browser opens its dialog.
 */
export function unauthorized(message = 'Sign in with your username and password.'): Refusal {
  return new Refusal(401, message);
}
