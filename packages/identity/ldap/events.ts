// What the LDAP server reports: the first refusals of a minute one by one, everything else as counts once a minute. A hostile
// client cannot fill the log.

import { causeOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { oneLine, shortened } from '@holdfast/kit/text';
import { MINUTE_MS } from '@holdfast/kit/time';

export interface BindEvent {
  username: string;
  address: string;
  door: 'core' | 'web';
}

export type Trouble = 'protocolErrors' | 'timedOut' | 'turnedAway' | 'storeFailures' | 'bindsRefused' | 'bindsLocked';

export interface LdapEvents {
  bindRefused(event: BindEvent & { reason: 'password' | 'locked' }): void;
  locked(event: BindEvent): void;
  failed(error: unknown): void;
  count(trouble: Trouble): void;
  /** Called often; writes the counts when a minute is over. */
  tick(): void;
}

const LINES_PER_MINUTE = 20;
const SHOWN_CHARACTERS = 80;

export function createEvents(log: Log, now: () => number): LdapEvents {
  let counts: Partial<Record<Trouble, number>> = {};
  let lines = 0;
  let since = now();

  function line(write: () => void): void {
    if (lines >= LINES_PER_MINUTE) return;
    lines++;
    write();
  }

  function count(trouble: Trouble): void {
    counts[trouble] = (counts[trouble] ?? 0) + 1;
  }

  function shown(event: BindEvent): BindEvent {
    return { ...event, username: shortened(oneLine(event.username), SHOWN_CHARACTERS) };
  }

  return {
    count,
    bindRefused(event) {
      count(event.reason === 'locked' ? 'bindsLocked' : 'bindsRefused');
      line(() => log.info('ldap.bind_refused', { ...shown(event), reason: event.reason }));
    },
    locked(event) {
      line(() => log.warn('ldap.locked', { ...shown(event) }));
    },
    failed(error) {
      count('storeFailures');
      line(() => log.error('ldap.failed', { error: shortened(oneLine(causeOf(error)), 300) }));
    },
    tick() {
      if (now() - since < MINUTE_MS) return;
      since = now();
      lines = 0;
      if (Object.keys(counts).length > 0) log.info('ldap.minute', counts);
      counts = {};
    },
  };
}
