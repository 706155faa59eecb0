// The console and the portal in a real browser, on one embedded stack: what people do there, on a phone and on a desk.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { coreOf, workDirectory } from '../embedded/core-client.ts';
import { newStack } from '../embedded/embedded.ts';
import { accountFlows } from './account-flows.ts';
import { chromiumMissing, startChromium } from './chromium.ts';
import { docsFlows } from './docs-flows.ts';
import { everyPage } from './every-page.ts';
import { furnish } from './furnished.ts';
import type { House } from './house.ts';
import { journey } from './journey.ts';
import { keyboardFlows } from './keyboard-flows.ts';
import { liveFlows } from './live-flows.ts';
import { mapFlows } from './map-flows.ts';
import { overviewFlows } from './overview-flows.ts';
import { signInFlows } from './sign-in-flows.ts';
import { workFlows } from './work-flows.ts';

const SETTINGS = {
  UPDATES_URL: 'off',
  MON_PROBE_INTERVAL: '2',
  MON_CONFIG_INTERVAL: '1',
  // Larger than that from the start: it is what somebody is to find out.
  MON_DATABASE_WARNING: '5000000',
  MON_DATABASE_INTERVAL: '1',
  MON_USER_EXPIRY_CHECK_INTERVAL: '1',
  // How full and how busy this machine is is not what is looked at.
  MON_DISK_WARNING: '99',
  MON_DISK_CRITICAL: '100',
  MON_DISK_DAYS_WARNING: '0.02',
  MON_DISK_DAYS_CRITICAL: '0.01',
  MON_PROBE_LATENCY_WARNING: '60',
  MON_PROBE_LATENCY_CRITICAL: '120',
  ENROLLMENT_TTL_MINUTES: '60',
  BACKUP_PASSPHRASE: 'only for the tests of pages',
  // A proof takes longer than everything that is looked at here.
  BACKUP_PROOF: 'off',
};

let opened: House | undefined;
const house = (): House => {
  if (opened === undefined) throw new Error('no stack');
  return opened;
};

describe.skipIf(chromiumMissing !== undefined)(chromiumMissing ?? 'in a browser', () => {
  beforeAll(async () => {
    const stack = await newStack();
    const envFile = join(dirname(stack.data), 'settings.env');
    writeFileSync(envFile, '# of the tests of pages\n');
    const BACKUP_TARGET = join(dirname(stack.data), 'backups');
    mkdirSync(BACKUP_TARGET);
    const started = stack.start(['--env', envFile], { env: { ...SETTINGS, BACKUP_TARGET } });
    const [{ code, output }, browser] = await Promise.all([started, startChromium()]);
    expect([code, output]).toEqual([0, expect.anything()]);
    opened = {
      stack,
      browser,
      envFile,
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
  overviewFlows(house);
  liveFlows(house);
  keyboardFlows(house);
  mapFlows(house);
  accountFlows(house);
  journey(house);
  workFlows(house);
  docsFlows(house);
  everyPage(house);
});
