// The program that makes authentik ready for the stack and ends; it says on standard output what it waits for and what it changed.

import { setTimeout as delay } from 'node:timers/promises';
import { setUpIdentity } from '../compose/containers/identity-setup.ts';
import { identitySetupApi } from '../compose/containers/identity-setup-api.ts';
import { takeIdentitySetupHandover } from '../compose/containers/identity-setup-handover.ts';
import { StackError } from '../compose/embedded/stack-error.ts';
import { jsonLog } from '../shared/adapters/json-log.ts';
import { messageOf } from '../shared/domain/thrown.ts';

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
