// Everybody on the stream, by what they are called. Several connections may go by the same name: the newest one counts.

import { nameKey } from '@holdfast/kit/names';
import type { StreamDevice } from '../model/stream.ts';
import type { Client } from './client.ts';

export interface Roster {
  readonly all: ReadonlySet<Client>;
  add(client: Client): void;
  remove(client: Client): void;
  /** Its uid or callsign has changed: called before and after. */
  unbind(client: Client): void;
  bind(client: Client): void;
  /** Newest first. */
  ofUid(uid: string): readonly Client[];
  /** The newest connection of that device, of its person. */
  ofDevice(device: StreamDevice, fits?: (client: Client) => boolean): Client | undefined;
  ofCallsign(callsign: string): readonly Client[];
  ofUser(username: string): readonly Client[];
}

export function createRoster(): Roster {
  const all = new Set<Client>();
  const [uids, callsigns, users] = [byName(), byName(), byName()];

  function bind(client: Client): void {
    if (client.shown === undefined) return;
    uids.add(client.shown.uid, client);
    callsigns.add(client.shown.callsign, client);
  }

  function unbind(client: Client): void {
    if (client.shown === undefined) return;
    uids.remove(client.shown.uid, client);
    callsigns.remove(client.shown.callsign, client);
  }

  return {
    all,
    bind,
    unbind,
    add(client) {
      all.add(client);
      users.add(nameKey(client.username), client);
    },
    remove(client) {
      unbind(client);
      all.delete(client);
      users.remove(nameKey(client.username), client);
    },
    ofUid: (uid) => uids.of(uid),
    ofDevice({ clientUid, username }, fits = () => true) {
      const key = nameKey(username);
      return uids.of(clientUid).find((client) => nameKey(client.username) === key && fits(client));
    },
    ofCallsign: (callsign) => callsigns.of(callsign),
    ofUser: (username) => users.of(nameKey(username)),
  };
}

interface ByName {
  add(name: string, client: Client): void;
  remove(name: string, client: Client): void;
  of(name: string): readonly Client[];
}

const NOBODY: readonly Client[] = [];

function byName(): ByName {
  const clients = new Map<string, readonly Client[]>();
  return {
    of: (name) => clients.get(name) ?? NOBODY,
    add(name, client) {
      const among = clients.get(name) ?? NOBODY;
      const older = among.findIndex(({ number }) => number < client.number);
      clients.set(name, among.toSpliced(older < 0 ? among.length : older, 0, client));
    },
    remove(name, client) {
      const left = (clients.get(name) ?? []).filter((each) => each !== client);
      if (left.length === 0) clients.delete(name);
      else clients.set(name, left);
    },
  };
}
