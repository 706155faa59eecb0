// Answers that are no success, in the provider's shapes.

import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Json } from '@holdfast/kit/json';

/** Thrown by handlers; the app answers with it. */
export class Refused extends Error {
  readonly status: ContentfulStatusCode;
  /** Undefined: the answer has no body. */
  readonly body: Json | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: ContentfulStatusCode, body?: Json, headers: Record<string, string> = {}) {
    super(`refused with ${status}`);
    this.name = 'Refused';
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

export const notFound = (detail = 'Not found.'): Refused => new Refused(404, { detail });
export const forbidden = (detail = 'You do not have permission to perform this action.'): Refused =>
  new Refused(403, { detail });
