// The sentence that the stack in containers has to keep: a device enrolls at the public door,
// streams, is stored, and is off when its certificate is revoked.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deviceUntilRevoked } from './device-until-revoked.ts';
import { type LightAuthenticator, openAuthenticator } from './light-authenticator.ts';
import { obstacle } from './shared-engine.ts';
import { sharedLight, type SharedLight } from './shared-light.ts';
import { throughCaddy } from './through-caddy.ts';

describe.skipIf(obstacle !== '')('a device', () => {
  let light: SharedLight;
  let authenticator: LightAuthenticator;

  beforeAll(async () => {
    light = await sharedLight();
    authenticator = await openAuthenticator(light);
  });
  afterAll(() => authenticator[Symbol.asyncDispose]());

  it('enrolls through the proxy with the public certificate, streams, is seen and stored, and is off when revoked', async () => {
    await deviceUntilRevoked(light, authenticator);
  });

  it('without credentials is asked for them at 8446, and one with a wrong password is refused', async () => {
    const config = '/Marti/api/tls/config';
    expect((await throughCaddy(light, config, { port: light.ports.enrollment })).status).toBe(401);
    const headers = { authorization: `Basic ${Buffer.from('nobody:wrong').toString('base64')}` };
    expect((await throughCaddy(light, config, { port: light.ports.enrollment, headers })).status).toBe(401);
  });
});
