// Newer releases as endoflife.date announces them: GET {url}/{product}.json, a list of cycles with the latest release of each.

import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import { messageOf } from '../domain/thrown.ts';
import type { ReleaseFeed } from '../ports/release-feed.ts';

const WITHIN_MS = 5_000;
const cycles = z.array(z.object({ cycle: z.coerce.string(), latest: z.string().optional() }));

/** A feed at `url`; `fetch` is the platform's. */
export function releaseFeed(url: string, fetch: typeof globalThis.fetch): ReleaseFeed {
  async function newest(product: string, cycle: string): Promise<string | undefined> {
    const response = await reach(`${url.replace(/\/$/, '')}/${encodeURIComponent(product)}.json`, fetch);
    if (response.status === 404) return undefined;
    const read = cycles.safeParse(await response.json().catch(() => undefined));
    if (!response.ok || !read.success)
      throw new AppError(
        'upstream',
        `${new URL(url).host} answered ${response.status}, and not with a list of releases`,
      );
    return read.data.find((each) => each.cycle === cycle)?.latest;
  }

  return { newest };
}

async function reach(address: string, fetch: typeof globalThis.fetch): Promise<Response> {
  try {
    return await fetch(address, { signal: AbortSignal.timeout(WITHIN_MS), headers: { accept: 'application/json' } });
  } catch (error) {
    throw new AppError('unavailable', `${new URL(address).host} cannot be reached: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
