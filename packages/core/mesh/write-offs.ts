// Writes into the tables who has gone with a lost node: once, by one of the nodes that remain, and
// not while the lost one still works with the database: then it is only cut off. If the node comes
// back with its clients, they have come again.

import type { Presence } from '../model/stream.ts';
import type { NodeRun, WorkingNodes } from '../store/node-sessions.ts';
import type { Client } from '../stream/client.ts';
import type { RemoteClient } from '../stream/other-nodes.ts';
import type { RemoteClients } from './remote-clients.ts';

export interface WriteOffsOptions {
  node: string;
  clients: RemoteClients;
  local: () => Iterable<Client>;
  went: (who: Presence) => void;
  came: (who: Presence) => void;
  working: WorkingNodes;
  steadyMs: () => number;
}

export interface LostNode extends NodeRun {
  clients: readonly RemoteClient[];
  /** When it was heard last. */
  messageMs: number;
}

interface Lost extends LostNode {
  atMs: number;
  /** Since when it has not worked, as far as the database says so. */
  idleSinceMs?: number | undefined;
  /** Another node has written them, unless the lost one worked on for that long. */
  isWrittenElsewhere?: boolean;
}

/** Whom a node had to write is written after so long. */
const WRITTEN_MS = 20_000;
/** After a restart of the database, or a failover, nodes are back at different times. */
const IDLE_MS = 5_000;

export class WriteOffs {
  readonly #options: WriteOffsOptions;
  /** What another node writes, by that node. */
  readonly #left = new Map<string, Lost[]>();
  /** What this node is to write. */
  #waiting: Lost[] = [];
  /** What this node has written, by the lost node. */
  readonly #written = new Map<string, { run: string; who: Presence[] }>();

  constructor(options: WriteOffsOptions) {
    this.#options = options;
  }

  /** `living`: the other nodes that know of it and were heard just now. The first one writes. */
  lost(lost: LostNode, living: (knownMs: number) => readonly string[]): void {
    const { node, clients } = lost;
    const atMs = this.#options.steadyMs();
    const inherited = this.#left.get(node) ?? [];
    this.#left.delete(node);
    if (clients.length + inherited.length === 0) return;
    const all: Lost[] = [{ ...lost, atMs }];
    for (const each of inherited) all.push({ ...each, isWrittenElsewhere: atMs - each.atMs > WRITTEN_MS });
    const knownMs = Math.min(...all.map(({ messageMs }) => messageMs));
    const [first] = living(knownMs)
      .filter((other) => other !== node && other < this.#options.node)
      .toSorted();
    if (first === undefined) this.#waiting.push(...all);
    else this.#left.set(first, [...(this.#left.get(first) ?? []), ...all]);
    void this.look();
  }

  /** To be called often. Writes nothing while the database is unavailable: who works is unknown. */
  async look(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const working = await this.#options.working().catch(() => undefined);
    const atMs = this.#options.steadyMs();
    const seen = this.#waiting.map((lost): Lost => {
      if (working === undefined) return { ...lost, idleSinceMs: undefined };
      const isWorking = working.some(({ node, run }) => node === lost.node && run === lost.run);
      if (isWorking) return { ...lost, idleSinceMs: undefined, isWrittenElsewhere: false };
      return { ...lost, idleSinceMs: lost.idleSinceMs ?? atMs };
    });
    const isOver = ({ idleSinceMs = atMs }: Lost): boolean => atMs - idleSinceMs >= IDLE_MS;
    this.#waiting = seen.filter((lost) => !isOver(lost));
    for (const lost of seen) if (isOver(lost) && lost.isWrittenElsewhere !== true) this.#write(lost);
  }

  /** It was out of reach, and its clients were there all the time. */
  back(node: string, run: string): void {
    const { clients, came, steadyMs } = this.#options;
    const isOver = (lost: Lost): boolean =>
      lost.node === node && (lost.run === run || steadyMs() - lost.atMs > WRITTEN_MS);
    this.#waiting = this.#waiting.filter((lost) => lost.node !== node || lost.run !== run);
    for (const [first, all] of this.#left)
      this.#left.set(
        first,
        all.filter((lost) => !isOver(lost)),
      );
    const written = this.#written.get(node);
    this.#written.delete(node);
    if (written?.run !== run) return;
    for (const who of written.who)
      if (clients.ofDevice({ clientUid: who.uid, username: who.username }).some((client) => client.node === node))
        came(who);
  }

  #write({ node, run, clients }: Lost): void {
    const who = clients.flatMap((client) => (client.logged === undefined || this.#isBack(client) ? [] : client.logged));
    this.#written.set(node, { run, who });
    for (const each of who) this.#options.went(each);
  }

  #isBack({ uid, username }: RemoteClient): boolean {
    const { clients, local } = this.#options;
    if (clients.ofDevice({ clientUid: uid, username }).length > 0) return true;
    return [...local()].some((client) => client.shown?.uid === uid && client.username === username);
  }
}
