// The sentence that the stack in containers has to keep: a device enrolls at the public door, streams, is stored, and is off when
// its certificate is revoked.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, query } from '../stack/embedded.ts';
import { streamDevice } from '../stack/stream-device.ts';
import { type LightDoors, openDoors } from './light-doors.ts';
import { sharedLight, type SharedLight } from './shared-light.ts';
import { corePlace, enrollThroughCaddy, letIn, newEnrollment, newUser } from './light-world.ts';
import { obstacle } from './shared-engine.ts';
import { administer, throughCaddy } from './through-caddy.ts';

describe.skipIf(obstacle !== '')('a device', () => {
  let light: SharedLight;
  let doors: LightDoors;

  beforeAll(async () => {
    light = await sharedLight();
    doors = await openDoors(light);
  });
  afterAll(() => doors[Symbol.asyncDispose]());

  it('enrolls through the proxy with the public certificate, streams, is seen and stored, and is off when revoked', async () => {
    const directory = mkdtempSync(join(doors.stack.data, 'device-'));
    const core = corePlace(light, doors);
    await administer(light, '/api/groups', { method: 'POST', json: { name: 'Rescue' } });
    const enrolled = async (username: string) => {
      const id = await newUser(light, username, ['Rescue']);
      const { token } = await newEnrollment(light, id);
      return { id, ...(await enrollThroughCaddy(light, directory, username, token)) };
    };
    const [ada, bob] = [await enrolled('device-ada'), await enrolled('device-bob')];
    const [adas, bobs] = [await letIn(core, ada, 'device-ada'), await letIn(core, bob, 'device-bob')];
    adas.report(47.125);
    const seen = await bobs.hears('where Ada is', (event) => event.uid() === adas.uid, 10_000);
    expect(seen.position()).toEqual([8.25, 47.125]);
    const { database } = doors.stack.file();
    const stored = async (): Promise<boolean> =>
      (await query(database, `SELECT FROM cot_router WHERE uid = '${adas.uid}'`)).length === 1;
    await eventually('it is stored', stored, 10_000);

    await administer(light, `/api/ops/certs/${encodeURIComponent(ada.hash)}/revoke`, { method: 'POST' });
    await eventually('Ada is off', () => !adas.isOpen, 10_000);
    const again = await streamDevice(core, ada, 'device-ada');
    await eventually('Ada is not let in again', () => !again.isOpen, 10_000);
    expect([again.heard, bobs.isOpen]).toEqual([[], true]);
    bobs.leave();
  });

  it('without credentials is asked for them at 8446, and one with a wrong password is refused', async () => {
    const config = '/Marti/api/tls/config';
    expect((await throughCaddy(light, config, { port: 18446 })).status).toBe(401);
    const headers = { authorization: `Basic ${Buffer.from('nobody:wrong').toString('base64')}` };
    expect((await throughCaddy(light, config, { port: 18446, headers })).status).toBe(401);
  });
});
