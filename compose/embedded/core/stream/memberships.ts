// The groups of whoever is on the stream or wants to be, remembered for the time when the directory does not answer.

import { nameKey } from '../../../../shared/domain/names.ts';
import { messageOf } from '../../../../shared/domain/thrown.ts';
import type { Log } from '../../../../shared/ports/log.ts';
import type { ClientCertificate } from '../parts.ts';
import type { PlacedMembership, StreamGroups } from './parts.ts';

export interface Memberships {
  /** `closed`: the account is not active. `unknown`: nobody can say now, and these were never learned. Never rejects. */
  of(certificate: ClientCertificate): Promise<readonly PlacedMembership[] | 'closed' | 'unknown'>;
}

const MOST_REMEMBERED = 10_000;

/**
 * Rule `keepGroupsWhileDirectoryIsAway`: who was seen before keeps the groups of then, so that an outage takes nobody off
 * the stream. Who was never seen is not let in: the group of the anonymous is for those whom the directory does not know.
 */
export function createMemberships(groups: StreamGroups, log: Log): Memberships {
  const learned = new Map<string, readonly PlacedMembership[]>();
  let away = false;

  function learn(key: string, memberships: readonly PlacedMembership[]): void {
    learned.delete(key);
    learned.set(key, memberships);
    const [oldest] = learned.keys();
    if (learned.size > MOST_REMEMBERED && oldest !== undefined) learned.delete(oldest);
  }

  async function of(certificate: ClientCertificate): Promise<readonly PlacedMembership[] | 'closed' | 'unknown'> {
    const key = `${certificate.channels} ${nameKey(certificate.commonName)}`;
    try {
      const found = await groups.of(certificate);
      if (away) log.info('stream.groups_read_again');
      away = false;
      if (found === 'closed') learned.delete(key);
      else learn(key, found);
      return found;
    } catch (error) {
      if (!away)
        log.warn('stream.groups_unreadable', { error: messageOf(error), consequence: 'groups stay as they were' });
      away = true;
      return learned.get(key) ?? 'unknown';
    }
  }

  return { of };
}
