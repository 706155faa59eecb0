// The client's connections to the core: who is shown, who is believed, what is kept; over real TLS.

import { once } from 'node:events';
import { chmodSync, copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type HttpCore, httpCore } from '../../shared/core/http.ts';
import { asRoot } from '../e2e/embedded/embedded.ts';
import { cuttingProxy } from '../support/cutting-proxy.ts';
import { freePort } from '../support/free-port.ts';
import { failureOf, type OddCore, type Routes, sendJson, wrapped } from './fake-odd-core.ts';
import { testPki } from './fake-test-pki.ts';
import { withOddCore } from './with-odd-core.ts';

const CERTIFICATES = '/Marti/api/certadmin/cert';
let server: OddCore;
let core: HttpCore;
const serve = (routes: Routes): void => server.serve(routes);

withOddCore((odd, client) => {
  server = odd;
  core = client;
});

describe('the connection', () => {
  it('is made with svc_api, kept, and made again when it was closed meanwhile', async () => {
    serve({ [`GET ${CERTIFICATES}`]: [] });
    const before = server.connections();
    for (let n = 0; n < 30; n += 1) await core.certificates();
    await Promise.all(Array.from({ length: 100 }, () => core.certificates()));
    const made = server.connections() - before;
    expect([made >= 8, made <= 16]).toEqual([true, true]);
    expect(server.met[0]?.name).toBe('svc_api');
    server.closeConnections();
    expect(await core.certificates()).toEqual([]);
  });

  it('carries the session that the core has given out', async () => {
    serve({
      [`GET ${CERTIFICATES}`]: (_: unknown, response: Parameters<typeof sendJson>[0]) => {
        response.setHeader('set-cookie', ['a=b', 'JSESSIONID=0123ABCD; Path=/; Secure; HttpOnly']);
        sendJson(response, wrapped([]));
      },
    });
    await core.certificates();
    await core.certificates();
    expect(server.met.map(({ headers }) => headers.cookie)).toEqual([undefined, 'JSESSIONID=0123ABCD']);
  });

  it('follows a new svc_api.p12 within a second', async () => {
    serve({ [`GET ${CERTIFICATES}`]: [] });
    await core.certificates();
    await server.writeBundle(await server.pki.client('svc_api_2'));
    await expect
      .poll(async () => {
        await core.certificates();
        return server.met.at(-1)?.name;
      })
      .toBe('svc_api_2');
    await server.writeBundle(await server.pki.client('svc_api'));
  });

  it('says that our certificate is refused, and takes the new one at the next call', async () => {
    const stranger = await testPki();
    await server.writeBundle(await stranger.client('svc_api'));
    serve({ [`GET ${CERTIFICATES}`]: [] });
    const refused = await failureOf(core.certificates());
    expect(refused.message).toMatch(/refuses our certificate.*Check that .*svc_api\.p12 is from its CA/);
    await server.writeBundle(await server.pki.client('svc_api'));
    expect(await core.certificates()).toEqual([]);
    rmSync(stranger.directory, { recursive: true });
  });

  it('is made with nobody whose certificate is of another CA, or made out to another host', async () => {
    const stranger = await testPki();
    const own = readFileSync(server.caFile);
    copyFileSync(stranger.ca.certificateFile, server.caFile);
    const untrusted = await failureOf(core.certificates());
    expect(untrusted).toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/certificate that is not trusted.*ca\.pem must be its CA/),
    });
    writeFileSync(server.caFile, own);
    const elsewhere = httpCore({ url: `https://localhost:${server.port}`, dataDir: server.dataDir });
    expect(await failureOf(elsewhere.certificates())).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID'),
    });
    expect(server.requests).toEqual([]);
    await elsewhere.close();
    rmSync(stranger.directory, { recursive: true });
  });

  it('that nobody takes is `unavailable`, and so is a port that does not speak TLS', async () => {
    const nobody = httpCore({ url: `https://127.0.0.1:${await freePort()}`, dataDir: server.dataDir });
    expect(await failureOf(nobody.status())).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('refused the connection'),
    });
    await nobody.close();
    const plain = createServer().listen(0, '127.0.0.1');
    await once(plain, 'listening');
    const { port } = plain.address() as AddressInfo;
    const other = httpCore({ url: `https://127.0.0.1:${port}`, dataDir: server.dataDir });
    expect(await failureOf(other.status())).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('does not speak TLS'),
    });
    await other.close();
    plain.close();
  });

  it('is made with the next address while the first one is down, with each request once, and with the first again', async () => {
    const proxy = await cuttingProxy(server.url);
    const both = httpCore({ url: `${proxy.url},${server.url}`, dataDir: server.dataDir });
    const place = (): string => `https://${both.port.connections.hosts}/`;
    serve({ [`GET ${CERTIFICATES}`]: [], 'POST /changed': wrapped(1) });
    await both.certificates();
    expect(place()).toBe(proxy.url);
    proxy.mood('closed');
    server.requests.length = 0;
    // Whether it was sent to the first one is not known: it is not repeated.
    await expect.poll(() => both.certificates().catch(() => undefined)).toEqual([]);
    expect((await both.port.within(5_000).ask('POST', '/changed', { body: '{}' })).status).toBe(200);
    expect(server.requests.filter((each) => each.startsWith('POST'))).toEqual(['POST /changed']);
    expect(place()).toBe(new URL(server.url).href);
    proxy.mood('good');
    const placeNow = async (): Promise<string> => {
      await both.certificates();
      return place();
    };
    await expect.poll(placeNow, { timeout: 10_000 }).toBe(proxy.url);
    await both.close();
    await proxy.close();
  });

  it('names all addresses when none can be reached', async () => {
    const [first, second] = [await freePort(), await freePort()];
    const url = `https://127.0.0.1:${first}, https://127.0.0.1:${second}`;
    const nobody = httpCore({ url, dataDir: server.dataDir });
    expect(await failureOf(nobody.status())).toMatchObject({
      code: 'unavailable',
      message: `The core at 127.0.0.1:${first}, 127.0.0.1:${second} refused the connection`,
    });
    await nobody.close();
  });

  it('needs its files, and names the one that is missing, unreadable or another, with the remedy', async () => {
    const { bundleFile, caFile } = server;
    const [ca, bundle] = [readFileSync(caFile), readFileSync(bundleFile)];
    const messagesOf = async (): Promise<string> => {
      const fresh = httpCore({ url: server.url, dataDir: server.dataDir });
      const failure = await failureOf(fresh.status());
      await fresh.close();
      expect(failure.code).toBe('unavailable');
      return failure.message;
    };
    const name = (file: string): string => file.replaceAll('.', '\\.');
    rmSync(bundleFile);
    expect(await messagesOf()).toMatch(new RegExp(`${name(bundleFile)} does not exist. Remedy: start the core once`));
    writeFileSync(bundleFile, 'no bundle');
    expect(await messagesOf()).toMatch(new RegExp(`${name(bundleFile)} isn't a PKCS#12 file`));
    await server.writeBundle(await server.pki.client('svc_api'), 'another');
    expect(await messagesOf()).toMatch(/does not open with the usual password/);
    writeFileSync(bundleFile, Buffer.alloc(300 * 1024));
    expect(await messagesOf()).toMatch(/has more than 262144 bytes/);
    writeFileSync(bundleFile, bundle);
    writeFileSync(caFile, 'nothing');
    expect(await messagesOf()).toMatch(new RegExp(`${name(caFile)} contains no CA certificate`));
    rmSync(caFile);
    expect(await messagesOf()).toMatch(new RegExp(`${name(caFile)} does not exist`));
    writeFileSync(caFile, ca);
    if (!asRoot) {
      chmodSync(bundleFile, 0);
      expect(await messagesOf()).toMatch(/cannot be read \(EACCES\). Remedy: let the user of Holdfast read it/);
      chmodSync(bundleFile, 0o600);
    }
  });
});
