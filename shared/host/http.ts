// Reads newer releases and the time from other hosts over HTTP.

import { z } from 'zod';
import { AppError, causeOf, codeOf } from '@holdfast/kit/app-error';
import { readBodyText } from '@holdfast/kit/body';
import type { ClockSource, ReleaseFeed } from './port.ts';

const WITHIN_MS = 5_000;
const MAX_BYTES = 1_000_000;
/** A server answered, but its answer can't be trusted or used. */
const REACHED = /CERT|TLS|SSL|SIGNED|SIGNATURE|^HPE_|REDIRECT/;

/**
 * Reads newer releases from endoflife.date: GET {url}/{product}.json returns a list of cycles with
 * the latest release of each. `fetch` is the platform's.
 */
export function releaseFeed(url: string, fetch: typeof globalThis.fetch): ReleaseFeed {
  const cycles = z.array(z.object({ cycle: z.coerce.string(), latest: z.string().optional() }));
  const { host } = new URL(url);

  async function newest(product: string, cycle: string): Promise<string | undefined> {
    const answer = await reach(`${url.replace(/\/$/, '')}/${encodeURIComponent(product)}.json`);
    if (answer.status === 404) return undefined;
    const read = cycles.safeParse(parsed(answer.text));
    if (answer.status !== 200 || !read.success)
      throw new AppError(
        'upstream',
        `${host} answered with status ${answer.status} instead of a list of releases. Check UPDATES_URL.`,
      );
    return read.data.find((each) => each.cycle === cycle)?.latest;
  }

  async function reach(address: string): Promise<{ status: number; text: string | undefined }> {
    try {
      const response = await fetch(address, {
        signal: AbortSignal.timeout(WITHIN_MS),
        headers: { accept: 'application/json' },
      });
      return { status: response.status, text: await textOf(response) };
    } catch (error) {
      const reached = REACHED.test(`${codeOf(error)} ${causeOf(error)}`.toUpperCase());
      const message = `Couldn't reach ${host} (${causeOf(error)})`;
      throw new AppError(reached ? 'upstream' : 'unavailable', message, { cause: error });
    }
  }

  return { newest };
}

/** Undefined when it is longer than any list of releases. */
async function textOf(response: Response): Promise<string | undefined> {
  const tooLong = new Error('longer than any list of releases');
  return readBodyText(response.body, MAX_BYTES, () => tooLong).catch((error: unknown) => {
    if (error === tooLong) return undefined;
    throw error;
  });
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads an HTTP server's clock from the Date header of any response. `name` is displayed to people.
 */
export function httpClock(name: string, url: string, fetch: typeof globalThis.fetch): ClockSource {
  async function readMs(): Promise<number> {
    let response: Response;
    try {
      response = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(WITHIN_MS) });
    } catch (error) {
      throw new AppError('unavailable', `The ${name} does not answer on ${url} (${causeOf(error)})`, { cause: error });
    }
    const date = Date.parse(response.headers.get('date') ?? '');
    if (Number.isNaN(date)) throw new AppError('upstream', `The ${name} sent no Date header`);
    return date;
  }

  return { name, readMs, resolutionMs: 1000 };
}
