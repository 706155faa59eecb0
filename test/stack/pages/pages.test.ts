// The console and the portal in a real browser, on one embedded stack: what people do there, on a phone and on a desk.

import { afterAll, beforeAll, describe, expect } from 'vitest';
import { coreOf, workDirectory } from '../core-client.ts';
import { newStack } from '../embedded.ts';
import { hasChromium, startChromium } from './chromium.ts';
import { everyPage } from './every-page.ts';
import { furnish } from './furnished.ts';
import type { House } from './house.ts';
import { signInFlows } from './sign-in-flows.ts';

const SETTINGS = {
  UPDATES_URL: 'off',
  MON_PROBE_INTERVAL: '2',
  MON_DATABASE_INTERVAL: '1',
  MON_USER_EXPIRY_CHECK_INTERVAL: '1',
  ENROLLMENT_TTL_MINUTES: '60',
};

let opened: House | undefined;
const house = (): House => {
  if (opened === undefined) throw new Error('no stack');
  return opened;
};

describe.skipIf(!hasChromium)('in a browser', () => {
  beforeAll(async () => {
    const stack = await newStack();
    const [{ code, output }, browser] = await Promise.all([stack.start([], { env: SETTINGS }), startChromium()]);
    expect([code, output]).toEqual([0, expect.anything()]);
    opened = {
      stack,
      browser,
      furniture: await furnish({ ...stack.file(), core: coreOf(stack), work: workDirectory(stack) }),
      console: stack.file().api,
      portal: `http://127.0.0.1:${3000 + stack.offset}`,
    };
  });
  afterAll(async () => {
    for (const device of opened?.furniture.devices ?? []) device.leave();
    await opened?.browser.close();
  });

  signInFlows(house);
  everyPage(house);
});
