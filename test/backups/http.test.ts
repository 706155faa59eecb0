import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ServerType, serve } from '@hono/node-server';
import type { AddressInfo } from 'node:net';
import { AppError } from '@holdfast/kit/app-error';
import { Secret } from '@holdfast/kit/secret';
import { HttpBackups } from '../../shared/backups/http.ts';
import type { Backups } from '../../shared/backups/port.ts';
import { backupsContract } from './contract.ts';
import { type FakeBackups, fakeBackups, serviceOver, TOKEN } from './fake-backups.ts';

let fake: FakeBackups;
let server: ServerType;
let url: string;
beforeEach(async () => {
  fake = fakeBackups(() => new Date());
  server = await new Promise((resolve) => {
    const started = serve({ fetch: serviceOver(fake).fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(started));
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

const adapter = (more: { fetch?: typeof fetch; token?: string; withinMs?: number } = {}): Backups =>
  new HttpBackups({ url, fetch, ...more, token: new Secret(more.token ?? TOKEN) });
const answering =
  (body: string, status = 200, headers: Record<string, string> = {}): typeof fetch =>
  async () =>
    new Response(body, { status, headers });
const failureOf = (work: Promise<unknown>): Promise<AppError> =>
  work.then(
    () => new AppError('internal', 'no error'),
    (error: unknown) => error as AppError,
  );

backupsContract('in memory', async () => ({ backups: fake, ended: async () => fake.end() }));
backupsContract('over HTTP', async () => ({ backups: adapter(), ended: async () => fake.end() }));

describe('the adapter of the backup service', () => {
  it('says what the service refuses, and passes its reason on', async () => {
    fake.error = new AppError('unavailable', 'The target /mnt/backups is not mounted.');
    expect(await failureOf(adapter().start({ requestedBy: 'ada' }))).toMatchObject({
      code: 'unavailable',
      message: 'The target /mnt/backups is not mounted.',
    });
    fake.error = new AppError('internal', 'It broke.');
    expect(await failureOf(adapter().state())).toMatchObject({
      code: 'upstream',
      message: 'The backup service answered 500: It broke.',
    });
  });

  it('never answers 401 for its own token, and shows it nowhere', async () => {
    const refused = await failureOf(adapter({ token: 'another-token-of-ours' }).state());
    expect([refused.code, refused.message]).toEqual(['upstream', expect.stringContaining('BACKUP_TOKEN')]);
    const echo = JSON.stringify({ code: 'conflict', message: `no ${TOKEN} here` });
    expect((await failureOf(adapter({ fetch: answering(echo, 409) }).state())).message).toBe('no *** here');
    const telling: typeof fetch = async () => {
      throw new Error(`headers: Bearer ${TOKEN}`);
    };
    expect((await failureOf(adapter({ fetch: telling }).state())).message).not.toContain(TOKEN);
  });

  it('is unavailable, with a remedy, when the service is down or hangs', async () => {
    await new Promise((resolve) => server.close(resolve));
    const down = await failureOf(adapter().state());
    expect([down.code, down.message]).toEqual([
      'unavailable',
      expect.stringMatching(/^The backup service at 127\.0\.0\.1:\d+ refused the connection\. Remedy: /),
    ]);
    let aborted = false;
    const hanging: typeof fetch = (_, init) =>
      new Promise(() => init?.signal?.addEventListener('abort', () => (aborted = true)));
    const late = await failureOf(adapter({ fetch: hanging, withinMs: 20 }).state());
    expect([late.code, late.message, aborted]).toEqual([
      'unavailable',
      expect.stringContaining('did not answer within 0.02 s'),
      true,
    ]);
  });

  it.each([
    ['no JSON', answering('<html>')],
    ['another kind of JSON', answering('{"backups": 1}')],
    ['a redirect', answering('', 302, { location: 'http://192.0.2.1/' })],
    ['an error without words', answering('Bad gateway', 502)],
  ])('takes %s for a failure of the service', async (_, answer) => {
    expect((await failureOf(adapter({ fetch: answer }).state())).code).toBe('upstream');
  });

  it('takes an archive without a size for a failure of the service', async () => {
    const { name } = fake.add();
    expect((await failureOf(adapter({ fetch: answering('x') }).read(name))).code).toBe('upstream');
  });

  it('stops the download at the service when the reader stops', async () => {
    const { name } = fake.add();
    let isCancelled = false;
    fake.read = async () => ({
      bytes: 1e9,
      body: new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
        cancel: () => void (isCancelled = true),
      }),
    });
    const { body } = await adapter().read(name);
    const reader = body.getReader();
    await reader.read();
    await reader.cancel();
    for (let tries = 0; !isCancelled && tries < 200; tries++) await new Promise((next) => setTimeout(next, 5));
    expect(isCancelled).toBe(true);
  });
});
