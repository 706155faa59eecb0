// Reads one file of a zip on the disk, without unpacking the rest.

import { type Entry, openPromise, type ZipFile } from 'yauzl';

/** Rejects with an Error that says what is wrong, in words; `called` is how it names the file. */
export async function readZipEntry(
  path: string,
  isWanted: (name: string) => boolean,
  { called, maxBytes }: { called: string; maxBytes: number },
): Promise<Buffer> {
  const zip = await openPromise(path, { autoClose: false });
  try {
    for await (const entry of zip.eachEntry())
      if (isWanted(entry.fileName)) {
        if (entry.uncompressedSize > maxBytes) throw new Error(`its ${called} has more than ${maxBytes} bytes`);
        return await bytesOf(zip, entry);
      }
  } finally {
    zip.close();
  }
  throw new Error(`it has no ${called}`);
}

async function bytesOf(zip: ZipFile, entry: Entry): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
