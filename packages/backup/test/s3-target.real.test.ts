import { createHash, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { freePort } from '../../../test/support/free-port.ts';
import type { Backup } from '../../../shared/backups/port.ts';
import type { S3Limits, S3Storage } from '../s3-client.ts';
import { inParts, S3Target } from '../s3-target.ts';
import { hasS3Server, type Relay, relayTo, type S3Server, startS3Server, storageAt } from './s3-server.ts';

const MIB = 1024 * 1024;
const FAST: S3Limits = { connectMs: 1000, stallMs: 400, tries: 3, staleUploadMs: 0 };
const NAME = 'holdfast-20260131T023000Z.tar.zst.age';
const BYTES = randomBytes(40 * MIB + 12_345);

const backup = (changes: Partial<Backup> = {}): Backup => ({
  name: NAME,
  created_at: '2026-01-31T02:30:00Z',
  seconds: 12.5,
  bytes: BYTES.length,
  sha256: sha256(BYTES),
  stack: 'embedded',
  release: '0.1.0',
  history: true,
  rows: 12,
  ca_fingerprint: 'ab'.repeat(32),
  requested_by: 'schedule',
  permanent: false,
  proof: null,
  ...changes,
});

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function* chunks(bytes: Uint8Array = BYTES, failAt = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 300_000) {
    if (at >= failAt) throw new Error('the content failed');
    yield bytes.subarray(at, at + 300_000);
  }
}

async function contentOf(target: S3Target, name = NAME): Promise<Buffer> {
  const { body } = await target.read(name);
  return Buffer.concat(await body.toArray());
}

describe.skipIf(!hasS3Server)('backups in S3-compatible storage (needs versitygw)', () => {
  let server: S3Server;
  let relay: Relay;
  let target: S3Target;
  const at = (changes: Partial<S3Storage>, limits: Partial<S3Limits> = {}): S3Target =>
    new S3Target(storageAt(server.port, changes), { ...FAST, ...limits });
  const throughRelay = (): S3Target => new S3Target(storageAt(relay.port), FAST);
  const stored = (): string[] =>
    readdirSync(server.directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
      .toSorted();

  // Storage may keep a part whose connection was lost after the upload was aborted: the next cleaning finds it.
  const isEmptyAfterCleaning = async (): Promise<void> => {
    await expect
      .poll(async () => {
        await target.clean();
        return stored();
      })
      .toEqual([]);
  };

  beforeAll(async () => {
    server = await startS3Server();
    relay = await relayTo(server.port);
    target = new S3Target(server.storage, FAST);
  });
  afterEach(async () => {
    relay.fault(undefined);
    for (const each of [NAME, ...(await target.list()).map(({ name }) => name)]) await target.remove(each);
    await isEmptyAfterCleaning();
  });
  afterAll(async () => {
    await relay.close();
    await server.stop();
  });

  it('stores an archive of unknown length, lists it by its sidecar, and gives the same bytes back', async () => {
    await target.check();
    expect(await target.list()).toEqual([]);
    await target.write(NAME, chunks());
    expect(await target.list()).toEqual([]);
    await target.putSidecar(backup());
    expect(await target.list()).toEqual([backup()]);
    await target.putSidecar(backup({ permanent: true }));
    expect(await target.list()).toEqual([backup({ permanent: true })]);
    const { bytes } = await target.read(NAME);
    expect([bytes, sha256(await contentOf(target))]).toEqual([BYTES.length, sha256(BYTES)]);
    await expect(target.write(NAME, chunks())).rejects.toMatchObject({ code: 'conflict' });
    expect(sha256(await contentOf(target))).toBe(sha256(BYTES));
    expect(await target.clean()).toEqual([]);
  });

  it('stores the facts of an archive before the archive appears', async () => {
    const moments: string[][] = [];
    const sidecar = (): Backup => {
      moments.push(stored());
      return backup();
    };
    await target.write(NAME, chunks(), { sidecar });
    expect(moments.flat().some((each) => each.endsWith(NAME))).toBe(false);
    expect(await target.list()).toEqual([backup()]);
  });

  it('stores small and empty content, and lists the newest first', async () => {
    const older = 'holdfast-20260130T023000Z.tar.zst.age';
    await target.write(older, chunks(Buffer.from('x')));
    await target.putSidecar(backup({ name: older, created_at: '2026-01-30T02:30:00Z' }));
    await target.write(NAME, chunks(Buffer.alloc(0)));
    await target.putSidecar(backup());
    expect((await target.list()).map(({ name }) => name)).toEqual([NAME, older]);
    expect([String(await contentOf(target, older)), (await contentOf(target)).length]).toEqual(['x', 0]);
  });

  it('knows no other names', async () => {
    for (const name of ['missing.tar.zst.age', '../one', `${NAME}.json`, ''])
      await expect(target.read(name)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('leaves nothing of an archive whose content fails or that is interrupted', async () => {
    await expect(target.write(NAME, chunks(BYTES, 20 * MIB))).rejects.toThrow('the content failed');
    const stop = new AbortController();
    async function* interrupted(): AsyncGenerator<Uint8Array> {
      for await (const chunk of chunks()) {
        yield chunk;
        if (!stop.signal.aborted) stop.abort(new Error('interrupted'));
      }
    }
    await expect(target.write(NAME, interrupted(), { signal: stop.signal })).rejects.toThrow('interrupted');
    expect(stored()).toEqual([]);
  });

  it('aborts the uploads of killed backups, and leaves younger ones and others alone', async () => {
    const kill = Promise.withResolvers<void>();
    async function* forever(): AsyncGenerator<Uint8Array> {
      yield BYTES.subarray(0, 17 * MIB);
      kill.resolve();
      await new Promise(() => undefined);
    }
    void target.write(NAME, forever());
    await kill.promise;
    await expect.poll(() => stored().length).toBeGreaterThan(0);
    expect(await at({}, { staleUploadMs: 60_000 }).clean()).toEqual([]);
    expect(await at({ prefix: 'other' }).clean()).toEqual([]);
    expect(await target.clean()).toEqual([NAME]);
    expect(stored()).toEqual([]);
  });

  it('deletes the sidecar of an archive that is gone', async () => {
    await target.putSidecar(backup());
    expect(await target.list()).toEqual([]);
    expect(await target.clean()).toEqual([`${NAME}.json`]);
  });

  it.each([
    ['a missing bucket', { bucket: 'missing' }, /bucket of s3:\/\/missing\/one\/stack does not exist/],
    ['an unknown key', { accessKey: new Secret('nobody') }, /does not know the access key|refused access/],
    ['a wrong key', { secretKey: new Secret('wrong-secret') }, /refused the secret key|refused access/],
  ])('explains %s, without the keys', async (_what, changes, words) => {
    const error: unknown = await at(changes)
      .check()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'StackError', message: expect.stringMatching(words) });
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toMatch(/wrong-secret|only-for-tests/);
    await expect(at(changes).write(NAME, chunks())).rejects.toThrow(words);
    await expect(at(changes).list()).rejects.toThrow(words);
  });

  it('explains storage that is not there, or never answers, within its time limit', async () => {
    const nowhere = new S3Target(storageAt(await freePort()), FAST);
    await expect(nowhere.check()).rejects.toThrow(/Nothing listens at the address of s3:/);
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const hanging = new S3Target(storageAt((silent.address() as { port: number }).port), { ...FAST, tries: 1 });
    await expect(hanging.check()).rejects.toThrow('did not answer within 0.4 s');
    silent.close();
  });

  it.each(['reset', 'hang'] as const)('goes on after a %s in the middle of an upload', async (how) => {
    relay.fault({ how, direction: 'up', afterBytes: 20 * MIB, times: 1 });
    await throughRelay().write(NAME, chunks());
    expect(relay.faults()).toBe(1);
    expect(sha256(await contentOf(target))).toBe(sha256(BYTES));
  });

  it('goes on when the answer to the last request gets lost', async () => {
    async function* andThenLose(): AsyncGenerator<Uint8Array> {
      yield* chunks(BYTES.subarray(0, MIB));
      relay.fault({ how: 'reset', direction: 'down', afterBytes: 400, times: 1 });
    }
    await throughRelay().write(NAME, andThenLose());
    expect(relay.faults()).toBe(1);
    expect((await contentOf(target)).length).toBe(MIB);
  });

  it.each(['reset', 'hang'] as const)('goes on after a %s in the middle of a download', async (how) => {
    await target.write(NAME, chunks());
    relay.fault({ how, direction: 'down', afterBytes: 20 * MIB, times: 1 });
    expect(sha256(await contentOf(throughRelay()))).toBe(sha256(BYTES));
    expect(relay.faults()).toBe(1);
  });

  it('gives up with a sentence when the connection is lost again and again, and leaves nothing', async () => {
    relay.fault({ how: 'reset', direction: 'up', afterBytes: 5 * MIB, times: 100 });
    await expect(throughRelay().write(NAME, chunks())).rejects.toThrow(/connection to s3:.* was lost/);
    relay.fault(undefined);
    await isEmptyAfterCleaning();
  });
});

it('cuts content into parts of one size', async () => {
  const lengths = async (sizes: number[]): Promise<number[]> => {
    const content = (async function* () {
      for (const size of sizes) yield new Uint8Array(size);
    })();
    const found: number[] = [];
    for await (const part of inParts(content, 10)) found.push(part.length);
    return found;
  };
  expect(await lengths([])).toEqual([0]);
  expect(await lengths([25, 0, 5])).toEqual([10, 10, 10]);
  expect(await lengths([3, 3, 3, 3])).toEqual([10, 2]);
});
