// A client as the parts of the stream see it: what it is, what it may, how it shows itself.

import type { ClientCertificate } from '../parts.ts';
import type { Audience } from './audiences.ts';
import type { KeptEvent } from './kept-event.ts';
import type { Outbox } from './outbox.ts';
import type { PlacedMembership, Presence } from './parts.ts';

/** How a client shows itself in its position reports. */
export interface Shown {
  uid: string;
  callsign: string;
  team: string;
  role: string;
  takClient: string;
  takVersion: string;
  /** Type of the newest report. */
  type: string;
  latest: KeptEvent;
  /** The elements that callsign, team and role were read from; undefined for those that are large. */
  contact: Buffer | undefined;
  group: Buffer | undefined;
  /** As the tables have it: from the first report. */
  logged: Presence;
}

export interface Client {
  /** Grows with each connection. */
  readonly number: number;
  readonly certificate: ClientCertificate;
  readonly username: string;
  readonly address: string;
  readonly port: number;
  readonly outbox: Outbox;
  /** Those that are switched on. */
  memberships: readonly PlacedMembership[];
  /** Who hears it. Its places are those of the groups that it may send into. */
  audience: Audience<Client>;
  shown: Shown | undefined;
  /** Events read. */
  processed: number;
  lastReadMs: number;
  end(reason: string): void;
}

/** The places of the groups that it may send into, or that it receives from. */
export function placesOf(memberships: readonly PlacedMembership[], direction: 'IN' | 'OUT'): number[] {
  return memberships.filter((each) => each.direction === direction).map(({ place }) => place);
}
