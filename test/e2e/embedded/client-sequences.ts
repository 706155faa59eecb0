// The sequences of PyTAK and ATAK against a core, by their own bytes: enrollment, profiles, what
// they answer to the offer of protobuf, chat, data packages, and the end of a certificate.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { strFromU8, unzipSync, zipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import {
  apiDevice,
  asDevice,
  type CorePlace,
  curl,
  type Device,
  enroll,
  keptCertificate,
  signingRequest,
} from './core-client.ts';
import { eventually } from './eventually.ts';
import { streamDevice } from './stream-device.ts';

/** A core whose directory lets everybody in with any password. */
type Parts = () => { place: CorePlace; work: string };

/** What curl has written: the head of the answer stands before it. */
function bodyIn(file: string): Buffer {
  const bytes = readFileSync(file);
  return bytes.subarray(bytes.indexOf('\r\n\r\n') + 4);
}

const time = (ms = 0): string => new Date(Date.now() + ms).toISOString();

export function clientSequences(parts: Parts): void {
  const basic = (user: string): string[] => ['-u', `${user}:any`];

  describe('PyTAK', () => {
    /** In microseconds, as its clock writes them. */
    const pythonTime = (ms = 0): string => time(ms).replace('Z', '000Z');

    it('enrolls without a version, sends with an XML declaration, and polls what was sent', async () => {
      const { place, work } = parts();
      const config = await curl(place, [...basic('pia'), `${place.enrollment}/Marti/api/tls/config`]);
      const names = [...config.body.matchAll(/nameEntry name="(\w+)" value="([^"]+)"/g)].map(([, name]) => name);
      expect([config.status, names]).toEqual([200, expect.arrayContaining(['O', 'OU'])]);
      const { keyFile, requestFile } = await signingRequest(work, 'pia');
      const asRequest = ['-H', 'Content-Type: application/pkcs10', '--data-binary', `@${requestFile}`];
      const signed = await curl(place, [
        ...basic('pia'),
        ...asRequest,
        `${place.enrollment}/Marti/api/tls/signClient/v2?clientUid=test`,
      ]);
      expect([signed.status, Object.keys(JSON.parse(signed.body) as object)]).toEqual([
        200,
        expect.arrayContaining(['signedCert', 'ca0']),
      ]);
      const old = await curl(place, [
        ...basic('pia'),
        ...asRequest,
        '-o',
        join(work, 'pia.p12'),
        `${place.enrollment}/Marti/api/tls/signClient?clientUid=test`,
      ]);
      expect(old.code).toBe(0);
      expect(bodyIn(join(work, 'pia.p12'))[0]).toBe(0x30);

      const device = { keyFile, ...(await keptCertificate(work, 'pia', signed.body)) };
      const listener = await streamDevice(place, await enroll(place, work, 'lea', 'any'), 'LEA');
      listener.report();
      await listener.isUpToDate();
      const sender = await streamDevice(place, device, 'PIA');
      const from = pythonTime(-60_000);
      sender.sendText(
        `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<event version="2.0" type="a-f-G-U-C" uid="pytak-1" how="m-g" time="${pythonTime()}" start="${pythonTime()}" stale="${pythonTime(120_000)}"><point lat="48.1" lon="11.5" le="9999999.0" hae="9999999.0" ce="9999999.0" /><detail><contact callsign="PyTAK" /><_flow-tags_ host-pytak="${pythonTime()}" /></detail></event>`,
      );
      await listener.hears('the position', (event) => event.uid() === 'pytak-1');
      const poll = (): string =>
        `/Marti/api/cot/sa?${new URLSearchParams({ start: from, end: pythonTime(1_000) }).toString()}`;
      await eventually(
        'it is stored',
        async () => (await asDevice(place, device, poll())).body.includes('pytak-1'),
        10_000,
      );
      for (const each of [sender, listener]) each.leave();
    });
  });

  describe('ATAK', () => {
    const control = (uid: string, version: number): string =>
      `<event version='2.0' uid='${uid}' type='t-x-takp-q' time='${time()}' start='${time()}' stale='${time(60_000)}' how='m-g'><point lat='0.0' lon='0.0' hae='0.0' ce='999999' le='999999'/><detail><TakControl><TakRequest version='${version}'/></TakControl></detail></event>`;
    let ann: Device;
    let ben: Device;

    it('enrolls, and gets the profile that turns channels on', async () => {
      const { place, work } = parts();
      [ann, ben] = [await enroll(place, work, 'ann', 'any'), await enroll(place, work, 'ben', 'any')];
      const file = join(work, 'enrollment.zip');
      const at = `${place.enrollment}/Marti/api/tls/profile/enrollment?clientUid=ANDROID-ANN`;
      expect((await curl(place, [...basic('ann'), '-o', file, at])).code).toBe(0);
      const files = unzipSync(bodyIn(file));
      expect(strFromU8(files['file0/enable-channels.pref'] ?? new Uint8Array())).toContain(
        'deviceProfileEnableOnConnect',
      );
      const connection = await asDevice(place, ann, '/Marti/api/device/profile/connection?syncSecago=-1&clientUid=x', [
        '-o',
        file,
      ]);
      expect(connection.code).toBe(0);
      expect((await asDevice(place, ann, '/update/product.infz', ['-I'])).status).toBe(200);
    });

    it('stays with XML if it is silent, and if its version is refused; chat reaches it', async () => {
      const { place } = parts();
      const silent = await streamDevice(place, ann, 'ANN');
      const refused = await streamDevice(place, ben, 'BEN');
      await silent.hears('the offer', (event) => event.type() === 't-x-takp-v');
      refused.sendText(control('q-9', 9));
      const response = await refused.hears('the refusal', (event) => event.type() === 't-x-takp-r');
      expect(JSON.stringify(response.raw)).toContain('"status":false');
      for (const device of [silent, refused]) device.report();
      for (const device of [silent, refused]) await device.isUpToDate();
      silent.chat({ uid: refused.uid, callsign: 'BEN' }, 'All good?');
      const chat = await refused.hears('the chat', (event) => event.type() === 'b-t-f');
      expect(JSON.stringify(chat.raw)).toContain('All good?');
      for (const device of [silent, refused]) device.leave();
    });

    it('looks for a package, uploads it, hides it, and the receiver fetches it', async () => {
      const { place, work } = parts();
      const file = join(work, 'package.zip');
      const bytes = zipSync({
        'MANIFEST/manifest.xml': new TextEncoder().encode('<MissionPackageManifest version="2"/>'),
      });
      writeFileSync(file, bytes);
      const hash = createHash('sha256').update(bytes).digest('hex');
      expect((await asDevice(place, ann, `/Marti/sync/missionquery?hash=${hash}`)).status).toBe(404);
      const upload = await asDevice(
        place,
        ann,
        `/Marti/sync/missionupload?hash=${hash}&filename=package.zip&creatorUid=ANDROID-ANN`,
        ['-F', `assetfile=@${file};type=application/x-zip-compressed`],
      );
      expect([upload.status, upload.body]).toEqual([200, expect.stringContaining(`/Marti/sync/content?hash=${hash}`)]);
      const hidden = ['-X', 'PUT', '-H', 'Content-Type: text/plain', '-d', 'private'];
      expect((await asDevice(place, ann, `/Marti/api/sync/metadata/${hash}/tool`, hidden)).status).toBe(200);
      expect((await asDevice(place, ben, '/Marti/sync/search?tool=public&keywords=missionpackage')).body).not.toContain(
        hash,
      );
      expect((await asDevice(place, ben, `/Marti/sync/missionquery?hash=${hash}`)).status).toBe(200);
      const fetched = join(work, 'fetched.zip');
      await asDevice(place, ben, `/Marti/sync/content?hash=${hash}`, ['-o', fetched]);
      expect(bodyIn(fetched).equals(Buffer.from(bytes))).toBe(true);
    });

    it('falls off when its certificate is revoked, and does not come back', async () => {
      const { place, work } = parts();
      const device = await streamDevice(place, ben, 'BEN');
      device.report();
      await device.isUpToDate();
      const path = `/Marti/api/certadmin/cert/${encodeURIComponent(ben.hash)}`;
      expect((await asDevice(place, await apiDevice(place, work), path, ['-X', 'DELETE'])).status).toBe(200);
      await eventually('its connection ends', () => !device.isOpen);
      const again = await streamDevice(place, ben, 'BEN');
      await eventually('the next one ends too', () => !again.isOpen);
      expect((await asDevice(place, ben, '/Marti/api/version')).status).toBe(0);
    });
  });
}
