// Bodies of requests: read as they come, up to a limit.

import { Refusal } from './refusal.ts';

const MOST_BODY_BYTES = 64 * 1024;

/** The whole body as UTF-8 text. Throws Refusal: 413 for more than 64 KB, 400 for what is no UTF-8 or ends early. */
export async function readText(request: Request): Promise<string> {
  if (Number(request.headers.get('content-length') ?? 0) > MOST_BODY_BYTES) throw tooLarge();
  const bytes = request.body === null ? new Uint8Array() : await readBytes(request.body);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new Refusal(400, 'The body is not UTF-8 text.', {}, { cause: error });
  }
}

async function readBytes(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(endedEarly);
    if (done) return Buffer.concat(chunks);
    size += value.length;
    if (size > MOST_BODY_BYTES) throw tooLarge();
    chunks.push(value);
  }
}

function endedEarly(cause: unknown): never {
  throw new Refusal(400, 'The body ended before its end.', {}, { cause });
}

function tooLarge(): Refusal {
  return new Refusal(413, 'A body may have 64 KB at most.');
}
