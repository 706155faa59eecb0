// Logs LDAP events: the first refusals of a minute one by one, everything else as counts once per
// minute. So a hostile client can't fill the log.

import { causeOf } from '@holdfast/kit/app-error';
import { type Log, MinuteLimit } from '@holdfast/kit/log';
import { oneLine, shortened } from '@holdfast/kit/text';

export interface BindEvent {
  username: string;
  address: string;
  door: 'core' | 'web';
}

export type Trouble = 'protocolErrors' | 'timedOut' | 'turnedAway' | 'storeFailures' | 'bindsRefused' | 'bindsLocked';

const SHOWN_CHARACTERS = 80;

export class LdapEvents {
  readonly #log: Log;
  readonly #minute: MinuteLimit<Trouble>;

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#minute = new MinuteLimit(now);
  }

  count(trouble: Trouble): void {
    this.#minute.count(trouble);
  }

  bindRefused(event: BindEvent & { reason: 'password' | 'locked' }): void {
    this.count(event.reason === 'locked' ? 'bindsLocked' : 'bindsRefused');
    if (this.#minute.takeLine()) this.#log.info('ldap.bind_refused', { ...shown(event), reason: event.reason });
  }

  locked(event: BindEvent): void {
    if (this.#minute.takeLine()) this.#log.warn('ldap.locked', { ...shown(event) });
  }

  failed(error: unknown): void {
    this.count('storeFailures');
    if (this.#minute.takeLine()) this.#log.error('ldap.failed', { error: shortened(oneLine(causeOf(error)), 300) });
  }

  /** Called often; writes the counts when a minute is over. */
  tick(): void {
    const counts = this.#minute.nextMinute() ?? {};
    if (Object.keys(counts).length > 0) this.#log.info('ldap.minute', counts);
  }
}

function shown(event: BindEvent): BindEvent {
  return { ...event, username: shortened(oneLine(event.username), SHOWN_CHARACTERS) };
}
