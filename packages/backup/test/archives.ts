// Archives in memory for tests: honest ones, and some that nobody honest would write.

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { zstdCompressSync } from 'node:zlib';
import { Encrypter } from 'age-encryption';
import { type Header as TarHeader, pack } from 'tar-stream';
import { RELEASE } from '@holdfast/kit/release';
import { Secret } from '@holdfast/kit/secret';
import { archiveBytes, type EncryptionKey, type ReadArchive } from '../archive.ts';
import { FORMAT, FORMAT_VERSION, type Header, HEADER_NAME, type Manifest, MANIFEST_NAME } from '../manifest.ts';

export const AT = new Date('2026-01-31T02:30:00Z');
export const PASSPHRASE = 'correct horse battery staple';
export const key = { passphrase: new Secret(PASSPHRASE) };

export const header: Header = {
  format: FORMAT,
  version: FORMAT_VERSION,
  release: RELEASE,
  architecture: 'x64',
  stack: 'embedded',
  created_at: AT.toISOString(),
  history: true,
  schemas: {},
  ca_fingerprint: 'ab'.repeat(32),
};

export function manifestOf(entries: Manifest['entries'], files: Manifest['files'] = []): Manifest {
  return { format: FORMAT, began_at: AT.toISOString(), ended_at: AT.toISOString(), entries, databases: [], files };
}

export interface RawEntry extends Partial<TarHeader> {
  name: string;
  content?: string | Buffer;
}

/** An honest archive of some files. */
export async function honest(files: Record<string, Buffer>, encryption: EncryptionKey = key): Promise<Buffer> {
  const bytes = archiveBytes(encryption, AT, async (writer) => {
    await writer.add(HEADER_NAME, Buffer.from(JSON.stringify(header)));
    for (const [name, content] of Object.entries(files)) await writer.add(name, content);
    await writer.add(MANIFEST_NAME, Buffer.from(JSON.stringify(manifestOf(writer.entries))));
  });
  return buffer(Readable.from(bytes));
}

/** Whatever entries there are, sealed with the right key. */
export async function sealed(entries: readonly RawEntry[]): Promise<Buffer> {
  const tar = pack();
  const whole = buffer(Readable.from(tar));
  for (const { content = '', ...entry } of entries) tar.entry(entry, Buffer.from(content));
  tar.finalize();
  return seal(zstdCompressSync(await whole));
}

export async function seal(content: Uint8Array): Promise<Buffer> {
  const encrypter = new Encrypter();
  encrypter.setScryptWorkFactor(10);
  encrypter.setPassphrase(PASSPHRASE);
  return Buffer.from(await encrypter.encrypt(content));
}

/** With a manifest that fits. */
export async function sealedWithManifest(entries: readonly RawEntry[], head: object = header): Promise<Buffer> {
  const all = [{ name: HEADER_NAME, content: JSON.stringify(head) }, ...entries];
  const listed = all.map(({ name, content = '' }) => ({
    name,
    bytes: Buffer.from(content).length,
    sha256: createHash('sha256').update(content).digest('hex'),
  }));
  return sealed([...all, { name: MANIFEST_NAME, content: JSON.stringify(manifestOf(listed)) }]);
}

export function reading(archive: Buffer, opened: ReadArchive['key'] = key, chunkBytes = 100_000): ReadArchive {
  const chunks: Buffer[] = [];
  for (let at = 0; at < archive.length; at += chunkBytes) chunks.push(archive.subarray(at, at + chunkBytes));
  return { open: async () => Readable.from(chunks, { objectMode: false }), key: opened };
}
