import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { archiveBytes, entriesOf, verifyArchive } from '../archive.ts';
import { HEADER_NAME } from '../manifest.ts';
import { AT, header, honest, reading, seal, sealed, sealedWithManifest } from './archives.ts';

const files = { 'files/core/a.pem': Buffer.from('one'), 'files/core/big': randomBytes(300_000) };

/** Encrypts to a recipient, without the work that a passphrase takes. */
async function forIdentity(): Promise<{ archive: Buffer; recipient: string; identity: Secret }> {
  const identity = await generateX25519Identity();
  const recipient = await identityToRecipient(identity);
  return { archive: await honest(files, { recipient }), recipient, identity: new Secret(identity) };
}

it('gives back every entry as it was written', async () => {
  const { archive, identity } = await forIdentity();
  const { header: read, manifest } = await verifyArchive(reading(archive, { identity }));
  expect(read).toEqual(header);
  expect(manifest.entries.map(({ name }) => name)).toEqual([HEADER_NAME, ...Object.keys(files)]);
  const found: Record<string, Buffer> = {};
  for await (const { name, content } of entriesOf(reading(archive, { identity }, 61))) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of content) chunks.push(chunk);
    found[name] = Buffer.concat(chunks);
  }
  for (const [name, content] of Object.entries(files)) expect(found[name]?.equals(content)).toBe(true);
});

it('is opened by the identity of its recipient, and by no passphrase', async () => {
  const { archive, identity } = await forIdentity();
  await expect(verifyArchive(reading(archive, { identity }))).resolves.toBeDefined();
  await expect(verifyArchive(reading(archive))).rejects.toThrow('The passphrase does not open this archive.');
  const other = new Secret(await generateX25519Identity());
  await expect(verifyArchive(reading(archive, { identity: other }))).rejects.toThrow('The identity does not open this');
});

it('is opened by its passphrase, and by no other', async () => {
  const archive = await honest(files);
  await expect(verifyArchive(reading(archive))).resolves.toMatchObject({ header });
  const wrong = { passphrase: new Secret('another') };
  await expect(verifyArchive(reading(archive, wrong))).rejects.toThrow('The passphrase does not open this archive.');
});

it('notices one flipped byte wherever it is, also when the archive was read before', async () => {
  const { archive, identity } = await forIdentity();
  const key = { identity };
  await verifyArchive(reading(archive, key));
  const places = [3, 30, 100, 150, 200, 260, 1000, 65_700, 65_800, 200_000, archive.length - 20, archive.length - 1];
  for (const at of places) {
    const flipped = Buffer.from(archive);
    flipped.writeUInt8(flipped.readUInt8(at) ^ 1, at);
    await expect(verifyArchive(reading(flipped, key)), `byte ${at}`).rejects.toThrow(/^The (?:archive|identity|file) /);
  }
});

it('notices a missing end wherever it begins', async () => {
  const { archive, identity } = await forIdentity();
  const chunk = 64 * 1024 + 16;
  const head = archive.length % chunk;
  for (const length of [0, 10, 150, head, head + chunk, archive.length - 1]) {
    const cut = archive.subarray(0, length);
    await expect(verifyArchive(reading(cut, { identity })), `${length} bytes`).rejects.toThrow(
      length === 0 ? 'is not a backup of Holdfast' : /The archive is (?:cut off|damaged)/,
    );
  }
});

it('notices that the manifest is missing, or is not of these entries', async () => {
  const head = { name: HEADER_NAME, content: JSON.stringify(header) };
  await expect(verifyArchive(reading(await sealed([head])))).rejects.toThrow('The archive is cut off');
  const manifest = (entries: object[]) =>
    JSON.stringify({
      format: 'holdfast-backup',
      began_at: AT.toISOString(),
      ended_at: AT.toISOString(),
      entries,
      databases: [],
      files: [],
    });
  const missing = await sealed([
    head,
    { name: 'manifest.json', content: manifest([{ name: 'files/a', bytes: 1, sha256: '0'.repeat(64) }]) },
  ]);
  await expect(verifyArchive(reading(missing))).rejects.toThrow('files/a is missing');
  const extra = await sealed([head, { name: 'files/a' }, { name: 'manifest.json', content: manifest([]) }]);
  await expect(verifyArchive(reading(extra))).rejects.toThrow('header.json is not in its manifest');
});

it('refuses entries that would lie elsewhere, links, and entries that are there twice', async () => {
  const refused = [
    [{ name: 'files/core/../../../etc/passwd', content: 'x' }],
    [{ name: '../evil', content: 'x' }],
    [{ name: '/etc/passwd', content: 'x' }],
    [{ name: 'files/./a', content: 'x' }],
    [{ name: 'files/a\\..\\b', content: 'x' }],
    [{ name: 'elsewhere/a', content: 'x' }],
    [{ name: 'files/link', type: 'symlink' as const, linkname: '/etc' }],
    [{ name: 'files/link', type: 'link' as const, linkname: 'files/a' }],
    [{ name: 'files/pipe', type: 'fifo' as const }],
    [
      { name: 'files/a', content: 'x' },
      { name: 'files/a', content: 'y' },
    ],
  ];
  for (const entries of refused)
    await expect(verifyArchive(reading(await sealedWithManifest(entries))), entries[0]?.name).rejects.toThrow(
      /^The archive is damaged: /,
    );
});

it('refuses what a newer release has made, and says which', async () => {
  const newer = await sealedWithManifest([], { ...header, version: 2, release: '99.1.0', more: true });
  await expect(verifyArchive(reading(newer))).rejects.toMatchObject({
    message: expect.stringContaining('The archive was made by Holdfast 99.1.0.') as string,
    remedy: 'restore it with Holdfast 99.1.0 or a later release',
  });
});

it('refuses files of other kinds', async () => {
  for (const foreign of [
    randomBytes(5000),
    Buffer.from('PK\u0003\u0004'),
    await seal(Buffer.from('not compressed')),
    await sealed([{ name: 'files/a', content: 'x' }]),
  ])
    await expect(verifyArchive(reading(foreign))).rejects.toThrow('The file is not a backup of Holdfast.');
});

it('ends the reader when the writer fails, and the writer when the reader stops', async () => {
  const { recipient } = await forIdentity();
  const failing = archiveBytes({ recipient }, AT, async (writer) => {
    await writer.add(HEADER_NAME, randomBytes(2_000_000));
    throw new Error('the database went away');
  });
  await expect(Readable.from(failing).resume().toArray()).rejects.toThrow('the database went away');

  const { promise: outcome, resolve } = Promise.withResolvers<unknown>();
  const endless = archiveBytes({ recipient }, AT, async (writer) => {
    try {
      for (let n = 0; ; n++) await writer.add(`files/${n}`, randomBytes(1_000_000));
    } catch (error) {
      resolve(error);
      throw error;
    }
  });
  const reader = Readable.from(endless);
  await once(reader, 'readable');
  reader.destroy();
  expect(await Promise.race([outcome, delay(5000, 'still writing')])).toBeInstanceOf(Error);
});

it('waits for its reader: a slow one keeps memory low', async () => {
  const { recipient } = await forIdentity();
  let written = 0;
  const slow = archiveBytes({ recipient }, AT, async (writer) => {
    for (let n = 0; n < 100; n++) {
      await writer.add(`files/${n}`, randomBytes(1_000_000));
      written++;
    }
  });
  await slow.next();
  await slow.next();
  await delay(300);
  expect(written).toBeLessThan(20);
  await slow.return(undefined);
});
