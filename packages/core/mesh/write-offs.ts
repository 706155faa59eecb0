// Writes into the tables who has gone with a lost node: once, by one of the nodes that remain. If
// the node comes back with its clients, they have come again.

import type { Presence } from '../model/stream.ts';
import type { Client } from '../stream/client.ts';
import type { RemoteClient } from '../stream/other-nodes.ts';
import type { RemoteClients } from './remote-clients.ts';

export interface WriteOffsOptions {
  node: string;
  clients: RemoteClients;
  local: () => Iterable<Client>;
  went: (who: Presence) => void;
  came: (who: Presence) => void;
  steadyMs: () => number;
}

/** A node that was to write them has been lost itself within so long. */
const HEIR_MS = 10_000;

export class WriteOffs {
  readonly #options: WriteOffsOptions;
  /** What another node writes, by that node. */
  readonly #left = new Map<string, { clients: readonly RemoteClient[]; atMs: number }>();
  /** What this node has written, by the lost node. */
  readonly #written = new Map<string, { run: string; who: Presence[] }>();

  constructor(options: WriteOffsOptions) {
    this.#options = options;
  }

  /** `living`: the other nodes that were heard just now. The first one of all writes. */
  lost(node: string, run: string, own: readonly RemoteClient[], living: readonly string[]): void {
    const { node: me, steadyMs, went } = this.#options;
    const heir = this.#left.get(node);
    this.#left.delete(node);
    const inherited = heir !== undefined && steadyMs() - heir.atMs <= HEIR_MS ? heir.clients : [];
    const clients = [...own, ...inherited];
    const [first] = living.filter((other) => other !== node && other < me).toSorted();
    if (first !== undefined) {
      const before = this.#left.get(first);
      const kept = before !== undefined && steadyMs() - before.atMs <= HEIR_MS ? before.clients : [];
      this.#left.set(first, { clients: [...kept, ...clients], atMs: steadyMs() });
      return;
    }
    const who = clients.flatMap((client) => (client.logged === undefined || this.#isBack(client) ? [] : client.logged));
    this.#written.set(node, { run, who });
    for (const each of who) went(each);
  }

  /** It was out of reach, and its clients were there all the time. */
  back(node: string, run: string): void {
    const { clients, came } = this.#options;
    const written = this.#written.get(node);
    this.#written.delete(node);
    if (written?.run !== run) return;
    for (const who of written.who)
      if (clients.ofDevice({ clientUid: who.uid, username: who.username }).some((client) => client.node === node))
        came(who);
  }

  #isBack({ uid, username }: RemoteClient): boolean {
    const { clients, local } = this.#options;
    if (clients.ofDevice({ clientUid: uid, username }).length > 0) return true;
    return [...local()].some((client) => client.shown?.uid === uid && client.username === username);
  }
}
