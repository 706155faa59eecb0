// What a release must find when it starts: a device that comes in before the directory answers stays in the anonymous group for as
// long as it is connected. Whoever reads the log learns every few seconds what is waited for.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';

export interface Awaited {
  /** `database`, `directory` */
  name: string;
  /** Rejects while it is not there. */
  check: () => Promise<void>;
}

export interface WaitOptions {
  log: Log;
  signal: AbortSignal;
  tryEveryMs?: number;
  sayEveryMs?: number;
}

/** Resolves when each has been there once; rejects with the reason of the signal. */
export async function waitForAll(awaited: readonly Awaited[], options: WaitOptions): Promise<void> {
  const reasons = new Map<string, string>(awaited.map(({ name }) => [name, 'not asked yet']));
  const say = (): void => {
    for (const [name, reason] of reasons) options.log.info('core.waits', { for: name, reason });
  };
  const timer = setInterval(say, options.sayEveryMs ?? 10_000);
  try {
    await Promise.all(awaited.map((each) => waitFor(each, reasons, options)));
  } finally {
    clearInterval(timer);
  }
}

async function waitFor(
  { name, check }: Awaited,
  reasons: Map<string, string>,
  { log, signal, tryEveryMs = 1_000 }: WaitOptions,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      await check();
      reasons.delete(name);
      log.info('core.found', { what: name });
      return;
    } catch (error) {
      reasons.set(name, messageOf(error));
    }
    await delay(tryEveryMs, undefined, { signal });
  }
}
