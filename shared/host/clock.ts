// The clock of an HTTP server, from the Date header of its answers.

import { AppError, causeOf } from '@holdfast/kit/app-error';
import type { ClockSource } from './port.ts';

const WITHIN_MS = 5_000;

/** `name` is shown to people; any answer of the server will do. */
export function httpClock(name: string, url: string, fetch: typeof globalThis.fetch): ClockSource {
  async function readMs(): Promise<number> {
    let response: Response;
    try {
      response = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(WITHIN_MS) });
    } catch (error) {
      throw new AppError('unavailable', `The ${name} does not answer on ${url} (${causeOf(error)})`, { cause: error });
    }
    const date = Date.parse(response.headers.get('date') ?? '');
    if (Number.isNaN(date)) throw new AppError('upstream', `The ${name} answers without a Date header`);
    return date;
  }

  return { name, readMs, resolutionMs: 1000 };
}
