// The program that makes authentik ready for the stack and ends; it says on standard output what it waits for and what it changed.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { jsonLog } from '@holdfast/kit/log';
import { identitySetupApi } from '@holdfast/setup/identity/api';
import { takeIdentitySetupHandover } from '@holdfast/setup/identity/handover';
import { setUpIdentity } from '@holdfast/setup/identity/setup';

const log = jsonLog({ role: 'identity-setup' });

async function main(): Promise<void> {
  const { url, ...setup } = takeIdentitySetupHandover(process.env);
  await setUpIdentity(identitySetupApi(url, fetch), setup, {
    now: () => performance.now(),
    pause: (ms) => delay(ms),
    waiting: (forWhat, why) => {
      log.info('identity-setup.waiting', { for: forWhat, why });
    },
    changed: (what) => log.info('identity-setup.changed', { what }),
  });
  log.info('identity-setup.done');
}

function leave(code: number): never {
  log.flush();
  process.exit(code);
}

// A stop is no success: what waits for this one must not start.
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => leave(1));
main().then(
  () => leave(0),
  (error: unknown) => {
    const remedy = error instanceof StackError ? { remedy: error.remedy } : {};
    log.error('identity-setup.failed', { error: messageOf(error), ...remedy });
    leave(1);
  },
);
