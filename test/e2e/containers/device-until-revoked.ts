// A device from its enrollment at the public door to the moment when its certificate is revoked.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { CorePlace, Device } from '../embedded/core-client.ts';
import { eventually, query } from '../embedded/embedded.ts';
import { letIn, streamDevice } from '../embedded/stream-device.ts';
import type { SharedLight } from './acme.ts';
import type { LightAuthenticator } from './light-authenticator.ts';
import { corePlace, enrollThroughCaddy, newEnrollment, newUser } from './light-world.ts';
import { administer } from './through-caddy.ts';

/**
 * It enrolls, streams, is seen and stored, and is off when it is revoked; another one stays.
 * Resolves with the revoked one.
 */
export async function deviceUntilRevoked(light: SharedLight, authenticator: LightAuthenticator): Promise<Device> {
  const directory = mkdtempSync(join(authenticator.stack.data, 'device-'));
  const core = corePlace(light, authenticator);
  await administer(light, '/api/groups', { method: 'POST', json: { name: 'Rescue' } });
  const enrolled = async (username: string) => {
    const id = await newUser(light, username, ['Rescue']);
    const { token } = await newEnrollment(light, id);
    return { id, ...(await enrollThroughCaddy(light, directory, username, token)) };
  };
  const [ada, bob] = [await enrolled('device-ada'), await enrolled('device-bob')];
  const [adas, bobs] = [await letIn(core, ada, 'device-ada'), await letIn(core, bob, 'device-bob')];
  adas.report(47.125);
  const seen = await bobs.hears('where Ada is', (event) => event.uid() === adas.uid);
  expect(seen.position()).toEqual([8.25, 47.125]);
  const { database } = authenticator.stack.file();
  const stored = async (): Promise<boolean> =>
    (await query(database, `SELECT FROM cot_router WHERE uid = '${adas.uid}'`)).length === 1;
  await eventually('it is stored', stored);

  await administer(light, `/api/ops/certs/${encodeURIComponent(ada.hash)}/revoke`, { method: 'POST' });
  await eventually('Ada is off', () => !adas.isOpen);
  await staysOut(core, ada, 'device-ada');
  expect(bobs.isOpen).toBe(true);
  bobs.leave();
  return ada;
}

/** A revoked device is not let in, and hears nothing. */
export async function staysOut(core: CorePlace, device: Device, callsign: string): Promise<void> {
  const again = await streamDevice(core, device, callsign);
  await eventually(`${callsign} is not let in again`, () => !again.isOpen);
  expect(again.heard).toEqual([]);
}
