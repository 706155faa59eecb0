// Asks the video relay of the stack (MediaMTX) which streams it has, over its HTTP API.

import { z } from 'zod';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import { readBodyText } from '@holdfast/kit/body';
import type { RelayStream, VideoRelay } from './port.ts';

const WITHIN_MS = 3_000;
const MAX_BYTES = 1_000_000;
const PATH = '/v3/paths/list?itemsPerPage=500';

const listed = z.object({
  items: z.array(
    z.object({
      name: z.string().max(500),
      ready: z.boolean().nullish(),
      readyTime: z.string().nullish(),
      tracks: z.array(z.string().max(100)).nullish(),
      readers: z.array(z.unknown()).nullish(),
    }),
  ),
});

/** `url` is RELAY_API_URL. */
export function videoRelay(url: string, fetch: typeof globalThis.fetch): VideoRelay {
  return {
    async streams(): Promise<RelayStream[]> {
      const { items } = await read(url, fetch);
      return items
        .filter(({ ready }) => ready === true)
        .map(({ name, readyTime, tracks, readers }) => ({
          name,
          since: Number.isNaN(Date.parse(readyTime ?? '')) ? null : new Date(readyTime ?? '').toISOString(),
          tracks: tracks ?? [],
          viewers: (readers ?? []).length,
        }))
        .toSorted((one, other) => (one.name < other.name ? -1 : 1));
    },
  };
}

async function read(url: string, fetch: typeof globalThis.fetch): Promise<z.infer<typeof listed>> {
  const { host } = new URL(url);
  try {
    const address = `${url.replace(/\/$/, '')}${PATH}`;
    const answer = await fetch(address, { redirect: 'error', signal: AbortSignal.timeout(WITHIN_MS) });
    const text = await readBodyText(
      answer.body as AsyncIterable<Uint8Array> | null,
      MAX_BYTES,
      () => new Error('it answered with too much'),
    );
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    return listed.parse(JSON.parse(text));
  } catch (cause) {
    const why = cause instanceof z.ZodError ? 'its answer is no list of streams' : messageOf(cause);
    throw new AppError('unavailable', `The video relay at ${host} can't be asked: ${why}. Check RELAY_API_URL.`, {
      cause,
    });
  }
}
