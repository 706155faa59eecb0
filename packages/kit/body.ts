// Reads the body of a request or an answer, up to a limit.

/**
 * The whole body; rejects with what `tooLarge` makes as soon as it has more than `maxBytes`. The
 * rest is not read then.
 */
export async function readBody(
  body: AsyncIterable<Uint8Array> | null | undefined,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** The same as UTF-8 text; what is none is replaced. */
export async function readBodyText(
  body: AsyncIterable<Uint8Array> | null | undefined,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<string> {
  return new TextDecoder().decode(await readBody(body, maxBytes, tooLarge));
}
