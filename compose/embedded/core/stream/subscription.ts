// A client of the stream as the lists of the API show it.

import type { Subscription } from '../parts.ts';
import type { Client } from './client.ts';

export function subscriptionOf(client: Client): Subscription {
  const { number, certificate, shown, username, memberships, address, port, outbox, processed, lastReadMs } = client;
  return {
    subscriptionUid: `tls:${number}`,
    certificate,
    callsign: shown?.callsign ?? '',
    clientUid: shown?.uid ?? '',
    lastReport: new Date(lastReadMs),
    takClient: shown?.takClient ?? '',
    takVersion: shown?.takVersion ?? '',
    username,
    groups: memberships.map(({ name, direction }) => ({ name, direction })),
    team: shown?.team ?? '',
    role: shown?.role ?? '',
    address,
    port,
    pendingWrites: outbox.pendingWrites,
    processed,
    protocol: 'tls',
  };
}
