// Everybody on the stream, by what they are called. Several connections may go by the same name: the newest one counts.

import { nameKey } from '@holdfast/kit/names';
import type { StreamDevice } from '../model/stream.ts';
import type { Client } from './client.ts';

export class Roster {
  readonly all = new Set<Client>();
  readonly #uids = new ByName();
  readonly #callsigns = new ByName();
  readonly #users = new ByName();

  bind(client: Client): void {
    if (client.shown === undefined) return;
    this.#uids.add(client.shown.uid, client);
    this.#callsigns.add(client.shown.callsign, client);
  }

  /** Its uid or callsign has changed: called before and after. */
  unbind(client: Client): void {
    if (client.shown === undefined) return;
    this.#uids.remove(client.shown.uid, client);
    this.#callsigns.remove(client.shown.callsign, client);
  }

  add(client: Client): void {
    this.all.add(client);
    this.#users.add(nameKey(client.username), client);
  }

  remove(client: Client): void {
    this.unbind(client);
    this.all.delete(client);
    this.#users.remove(nameKey(client.username), client);
  }

  /** Newest first. */
  ofUid(uid: string): readonly Client[] {
    return this.#uids.of(uid);
  }

  /** The newest connection of that device, of its person. */
  ofDevice({ clientUid, username }: StreamDevice, fits: (client: Client) => boolean = () => true): Client | undefined {
    const key = nameKey(username);
    return this.#uids.of(clientUid).find((client) => nameKey(client.username) === key && fits(client));
  }

  ofCallsign(callsign: string): readonly Client[] {
    return this.#callsigns.of(callsign);
  }

  ofUser(username: string): readonly Client[] {
    return this.#users.of(nameKey(username));
  }
}

const NOBODY: readonly Client[] = [];

class ByName {
  readonly #clients = new Map<string, readonly Client[]>();

  of(name: string): readonly Client[] {
    return this.#clients.get(name) ?? NOBODY;
  }

  add(name: string, client: Client): void {
    const among = this.#clients.get(name) ?? NOBODY;
    const older = among.findIndex(({ number }) => number < client.number);
    this.#clients.set(name, among.toSpliced(older < 0 ? among.length : older, 0, client));
  }

  remove(name: string, client: Client): void {
    const left = (this.#clients.get(name) ?? []).filter((each) => each !== client);
    if (left.length === 0) this.#clients.delete(name);
    else this.#clients.set(name, left);
  }
}
