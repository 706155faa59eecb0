// Notices by the client of the core: against a real embedded core with devices of both framings over TLS, and against odd answers.

import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import CoT, { CoTParser } from '@tak-ps/node-cot';
import { beforeAll, describe, expect, it } from 'vitest';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { cot } from '../../packages/core/test/fake-cot-stream.ts';
import { type HttpCore, httpCore } from '../../shared/core/http.ts';
import { asDevice, type CorePlace, type Device, enroll } from '../e2e/embedded/core-client.ts';
import { coreInProcess, type CoreInProcess } from '../e2e/embedded/core-in-process.ts';
import { eventually } from '../e2e/embedded/embedded.ts';
import { emptyDatabase } from '../e2e/embedded/empty-database.ts';
import { type StreamDevice, streamDevice } from '../e2e/embedded/stream-device.ts';
import { coreNoticesContract } from './core-notices-contract.ts';
import { codeOf } from './core-retention-contract.ts';
import { type OddCore, sendJson, wrapped } from './fake-odd-core.ts';
import { withOddCore } from './with-odd-core.ts';

const NOTICES = '/Marti/api/stream/notices';

describe('the embedded core', () => {
  const database = emptyDatabase();
  let client: HttpCore;
  let place: CorePlace;
  let work: string;
  let core: CoreInProcess['core'];
  let ada: Device;
  let devices: { xml: StreamDevice; protobuf: ProtobufDevice; slow: TLSSocket };

  beforeAll(async () => {
    work = mkdtempSync(join(database.data(), 'work-'));
    ({ core, place } = await coreInProcess(database.url(), work, (username) => [`core_${username}`]));
    client = httpCore({ url: place.api, dataDir: place.directory });
    const [bob, sam] = [await enroll(place, work, 'bob', 'any'), await enroll(place, work, 'sam', 'any')];
    ada = await enroll(place, work, 'ada', 'any');
    const slow = socketOf(place, sam);
    devices = { xml: await streamDevice(place, ada, 'ADA'), protobuf: await protobufDevice(place, bob), slow };
    devices.xml.report();
    await eventually('all three are on the stream', async () => (await client.clients()).length === 3);
    slow.pause();
  });

  coreNoticesContract('embedded', async () => ({
    core: client.notices,
    clients: 3,
    async reported() {
      await devices.xml.isUpToDate();
      const reports = textsOf(devices.xml.heard);
      await expect.poll(() => textsOf(devices.protobuf.heard)).toEqual(reports);
      return reports;
    },
    end: async () => undefined,
  }));

  it('stores nothing of it, and answers while the tables of events are locked and somebody does not read', async () => {
    const rows = async (): Promise<unknown> =>
      database.inDatabase('SELECT (SELECT count(*) FROM cot_router) + (SELECT count(*) FROM cot_router_chat) AS rows');
    await expect.poll(async () => JSON.stringify(await rows())).toBe('[{"rows":"1"}]');
    const before = devices.xml.heard.length;
    await withDatabase(new Secret(database.url()), 'vacuum', 20_000, (sql) =>
      sql.begin(async (tx) => {
        await tx`LOCK TABLE cot_router, cot_router_chat IN ACCESS EXCLUSIVE MODE`;
        for (let n = 0; n < 20; n++) expect(await client.notices.announce('🦊'.repeat(1000))).toBe(3);
        await devices.xml.isUpToDate();
      }),
    );
    expect(textsOf(devices.xml.heard.slice(before))).toHaveLength(20);
    devices.xml.report();
    await expect.poll(async () => JSON.stringify(await rows())).toBe('[{"rows":"2"}]');
  });

  it('is told by no certificate of a device: 403', async () => {
    const more = ['-H', 'content-type: application/json', '--data', '{"text":"a"}'];
    const before = devices.xml.heard.length;
    expect((await asDevice(place, ada, NOTICES, more)).status).toBe(403);
    await devices.xml.isUpToDate();
    expect(textsOf(devices.xml.heard.slice(before))).toEqual([]);
  });

  it('tells nobody when nobody is connected', async () => {
    devices.xml.leave();
    devices.protobuf.socket.destroy();
    devices.slow.destroy();
    await expect.poll(async () => (await client.clients()).length).toBe(0);
    expect(await client.notices.announce('a')).toBe(0);
    await client.close();
    await core.close(100);
  });
});

describe('before an odd core', () => {
  let server: OddCore;
  let core: HttpCore;
  withOddCore((odd, client) => {
    server = odd;
    core = client;
  });
  const answers = (answer: OddCore['answers']): void => server.serve({ [`POST ${NOTICES}`]: answer });

  it.each([404, 405, 501])('%i is a core without the call', async (status) => {
    answers((_, response) => void response.writeHead(status).end('no such page'));
    expect(await core.notices.announce('a')).toBeUndefined();
  });

  it('sends the text alone, as JSON', async () => {
    let reported: unknown;
    answers((_, response, body) => {
      reported = JSON.parse(body);
      sendJson(response, wrapped({ clients: 7 }));
    });
    expect(await core.notices.announce('<a> "ä"')).toBe(7);
    expect(reported).toEqual({ text: '<a> "ä"' });
  });

  it.each([
    ['no figure', wrapped({}), 200, 'upstream'],
    ['less than nobody', wrapped({ clients: -1 }), 200, 'upstream'],
    ['a part that is away', {}, 503, 'unavailable'],
    ['a part that it does not reach', { status: 'NOT_FOUND', code: 0, message: 'x' }, 404, 'unavailable'],
    ['a right that is missing', {}, 403, 'upstream'],
    ['a text that it does not take', { status: 'BAD_REQUEST', code: 1, message: 'text' }, 400, 'invalid'],
  ])('%s is an error', async (_, body, status, code) => {
    answers((_request, response) => sendJson(response, body, status));
    expect(await codeOf(core.notices.announce('a'))).toBe(code);
  });
});

interface ProtobufDevice {
  socket: TLSSocket;
  heard: CoT[];
}

/** What the server has said to all. */
function textsOf(heard: readonly CoT[]): string[] {
  return heard
    .filter(({ raw }) => raw.event._attributes.uid.startsWith('GeoChat.Holdfast.All Chat Rooms.'))
    .map(({ raw }) => raw.event.detail?.remarks?._text ?? '');
}

function socketOf({ streaming, directory }: CorePlace, { certificateFile, keyFile }: Device): TLSSocket {
  const { hostname: host, port } = new URL(streaming);
  const [ca, cert, key] = [`${directory}/certs/files/ca.pem`, certificateFile, keyFile].map((file) =>
    readFileSync(file),
  );
  return connect({ host, port: Number(port), ca, cert, key }).on('error', () => undefined);
}

/** It reads protobuf from the agreement on. */
async function protobufDevice(place: CorePlace, device: Device): Promise<ProtobufDevice> {
  const socket = socketOf(place, device);
  const heard: CoT[] = [];
  let bytes = Buffer.alloc(0);
  let isAgreed = false;
  let reading = Promise.resolve();
  socket.on('data', (chunk: Buffer) => {
    reading = reading.then(async () => {
      bytes = Buffer.concat([bytes, chunk]);
      if (!isAgreed) {
        const end = bytes.indexOf('</event>', bytes.indexOf('t-x-takp-r'));
        if (end < 0 || !bytes.includes('t-x-takp-r')) return;
        bytes = bytes.subarray(end + '</event>'.length);
        isAgreed = true;
      }
      for (let frame = protobufFrame(bytes); frame !== undefined; frame = protobufFrame(bytes)) {
        bytes = bytes.subarray(frame.end);
        heard.push(await CoTParser.from_proto(frame.message));
      }
    });
  });
  socket.write(cot('q1', 't-x-takp-q', '<TakControl><TakRequest version="1"/></TakControl>'));
  await eventually('protobuf is agreed', () => isAgreed);
  return { socket, heard };
}

function protobufFrame(bytes: Buffer): { message: Uint8Array; end: number } | undefined {
  let length = 0;
  for (let at = 1; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    length += (byte & 0x7f) << (7 * (at - 1));
    if (byte >= 0x80) continue;
    const end = at + 1 + length;
    return end > bytes.length ? undefined : { message: new Uint8Array(bytes.subarray(at + 1, end)), end };
  }
  return undefined;
}
