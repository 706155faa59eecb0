// Tells the other nodes which clients this one has, and learns theirs. Each node owns its own
// clients: it sends all of them when a node appears, then changes, then a beat each second that
// shows whether one was missed.

import { messageOf } from '@holdfast/kit/app-error';
import type { CoreNode } from '@holdfast/kit/core-wire';
import type { Log } from '@holdfast/kit/log';
import { z } from 'zod';
import type { Presence } from '../model/stream.ts';
import type { Client } from '../stream/client.ts';
import type { RemoteClient } from '../stream/other-nodes.ts';
import type { NodeRun, WorkingNodes } from '../store/node-sessions.ts';
import type { Bus } from './bus.ts';
import { decodeMessage, JSON_START, MAX_MESSAGE_BYTES, Parts, splitMessage } from './messages.ts';
import { absentSchema, type Announcement, announcementSchema, Nodes } from './nodes.ts';
import { cardOf, cardSchema, type RemoteClients } from './remote-clients.ts';
import { subjects } from './subjects.ts';
import { WriteOffs } from './write-offs.ts';

const from = {
  node: z.string(),
  run: z.string(),
  revision: z.int(),
  /** It knows that nobody is in the tables who was there before all nodes started. */
  isSettled: z.boolean(),
};
const messageSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('state'),
    ...from,
    cards: z.array(cardSchema),
    wantsState: z.boolean(),
    announcement: announcementSchema,
    absent: z.array(absentSchema),
  }),
  z.object({ kind: z.literal('change'), ...from, cards: z.array(cardSchema), left: z.array(z.number()) }),
  z.object({
    kind: z.literal('beat'),
    ...from,
    seen: z.array(z.tuple([z.number(), z.number(), z.int()])),
    memoryBytes: z.int(),
    /** Of its last message to the others. */
    sequence: z.int(),
  }),
  z.object({ kind: z.literal('bye'), ...from }),
  z.object({ kind: z.literal('end'), ...from, number: z.number() }),
]);
type Message = z.infer<typeof messageSchema>;
type Body<K extends Message['kind']> = Omit<Extract<Message, { kind: K }>, keyof typeof from | 'kind'>;

export interface PeersOptions extends NodeRun {
  /** What this node is, now. */
  announcement: () => Announcement;
  bus: Bus;
  clients: RemoteClients;
  /** The clients of this node. */
  local: () => Iterable<Client>;
  /** A client of another node has left. */
  left: (client: RemoteClient) => void;
  /**
   * Another node has sent all of its clients. `run` is another one after each of its starts. With
   * `wantsState` it asks because it may have missed something. `isReplaced`: its run before ended
   * without notice.
   */
  joined: (node: string, run: string, how: { wantsState: boolean; isReplaced: boolean }) => void;
  /** Of the last message of this node. */
  sequence: () => number;
  /** That node has said so much until now, and this one has heard it. */
  reached: (node: string, run: string, sequence: number) => void;
  /** A client went with a node that was lost, or is still there. */
  went: (who: Presence) => void;
  came: (who: Presence) => void;
  working: WorkingNodes;
  /** `flush` is to be called at the end of this turn. */
  schedule: () => void;
  log: Log;
  now: () => Date;
  steadyMs: () => number;
}

interface Peer {
  run: string;
  revision: number;
  heardMs: number;
  /** When this run of it has first told its clients, and when it has told something last. */
  joinedMs: number;
  messageMs: number;
  isSettled: boolean;
}

const BEAT_MS = 1_000;
const SILENT_MS = 5_000;
const DEAF_MS = 2 * BEAT_MS;
/** How often the others learn when clients were heard last. */
const SEEN_EVERY_BEATS = 10;

export class Peers {
  readonly #options: PeersOptions;
  readonly #peers = new Map<string, Peer>();
  readonly #nodes: Nodes;
  readonly #writeOffs: WriteOffs;
  /** Of nodes that have not stopped, also of lost ones: the run that was heard last. */
  readonly #runs = new Map<string, string>();
  readonly #changed = new Map<number, Client>();
  /** Of each node: what came of a large message. */
  readonly #parts = new Map<string, Parts>();
  #left: number[] = [];
  #revision = 0;
  #beats = 0;
  #isSettled = false;
  #lastBeatMs = Number.NaN;
  #provenMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PeersOptions) {
    this.#options = options;
    this.#nodes = new Nodes(options.now);
    this.#writeOffs = new WriteOffs(options);
  }

  /** This one and the others, also those that are not there. */
  states(): CoreNode[] {
    const { node, announcement, clients, local } = this.#options;
    this.#nodes.announced(node, announcement());
    const counts = new Map([[node, [...local()].length]]);
    for (const other of clients.all()) counts.set(other.node, (counts.get(other.node) ?? 0) + 1);
    return this.#nodes.list(counts);
  }

  /** Names of the other nodes that are there. */
  get nodes(): string[] {
    return [...this.#peers.keys()];
  }

  /** Whether one of the others has settled. */
  get areSettled(): boolean {
    return [...this.#peers.values()].some(({ isSettled }) => isSettled);
  }

  /** Tells the others with each message from now on. */
  settle(): void {
    this.#isSettled = true;
  }

  start(): void {
    const { bus, node, steadyMs } = this.#options;
    bus.subscribe(subjects.clients, (message) => this.#take(message));
    bus.subscribe(subjects.clientsOf(node), (message) => this.#take(message));
    bus.onChange((isUp) => {
      if (isUp) this.#sayState(true);
    });
    if (bus.isUp) this.#sayState(true);
    this.#lastBeatMs = steadyMs();
    this.#timer = setInterval(() => this.beat(), BEAT_MS).unref();
  }

  changed(client: Client): void {
    this.#changed.set(client.number, client);
    this.#options.schedule();
  }

  left(client: Client): void {
    this.#changed.delete(client.number);
    this.#left.push(client.number);
    this.#options.schedule();
  }

  /** Ends a client of another node. */
  end({ node, number }: RemoteClient): void {
    this.#say('end', { number }, subjects.clientsOf(node));
  }

  /** Tells the changes of the turn. */
  flush(): void {
    if (this.#changed.size + this.#left.length === 0) return;
    this.#revision++;
    this.#say('change', { cards: [...this.#changed.values()].map(cardOf), left: this.#left });
    this.#changed.clear();
    this.#left = [];
  }

  /** The bus has answered: what others have said until now was heard. */
  proven(): void {
    this.#provenMs = this.#options.steadyMs();
  }

  /** Called each second. Silence counts only while this node could hear the others. */
  beat(): void {
    const { bus, steadyMs, local } = this.#options;
    const atMs = steadyMs();
    const wasDeaf = !bus.isUp || atMs - this.#provenMs > DEAF_MS || atMs - this.#lastBeatMs > DEAF_MS;
    this.#lastBeatMs = atMs;
    const isDue = ++this.#beats % SEEN_EVERY_BEATS === 0;
    const seen = isDue ? [...local()].map((each) => [each.number, each.lastReadMs, each.processed] as const) : [];
    const { memoryBytes } = this.#options.announcement();
    this.#say('beat', { seen: seen.map(([...each]) => each), memoryBytes, sequence: this.#options.sequence() });
    void this.#writeOffs.look();
    for (const [node, peer] of this.#peers)
      if (wasDeaf) peer.heardMs = atMs;
      else if (atMs - peer.heardMs > SILENT_MS) this.#lost(node, peer);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#say('bye', {});
  }

  #sayState(wantsState: boolean, subject?: string): void {
    const { local, announcement } = this.#options;
    const cards = [...local()].map(cardOf);
    this.#say('state', { cards, wantsState, announcement: announcement(), absent: this.#nodes.absent() }, subject);
  }

  #say<K extends Message['kind']>(kind: K, body: Body<K>, subject: string = subjects.clients): void {
    const { bus, node } = this.#options;
    const message = Buffer.from(JSON.stringify({ kind, node, ...this.#own(), ...body }));
    if (message.length <= MAX_MESSAGE_BYTES) bus.publish(subject, message);
    else for (const part of splitMessage(node, 0, message)) bus.publish(subject, part);
  }

  #own(): Pick<Peer, 'run' | 'revision' | 'isSettled'> {
    return { run: this.#options.run, revision: this.#revision, isSettled: this.#isSettled };
  }

  #take(bytes: Buffer): void {
    try {
      const whole = bytes[0] === JSON_START ? bytes : this.#join(bytes);
      if (whole === undefined) return;
      const message = messageSchema.parse(JSON.parse(whole.toString('utf8')));
      if (message.node !== this.#options.node) this.#follow(message);
    } catch (error) {
      this.#options.log.error('mesh.message_unreadable', { error: messageOf(error), bytes: bytes.length });
    }
  }

  /** The whole message with its last part. */
  #join(bytes: Buffer): Buffer | undefined {
    const part = decodeMessage(bytes);
    if (!('index' in part)) throw new RangeError('events are not for the list of clients');
    const parts = this.#parts.get(part.node) ?? new Parts();
    this.#parts.set(part.node, parts);
    return parts.take(part);
  }

  #follow(message: Message): void {
    const { node, run, revision } = message;
    const { clients, local, steadyMs } = this.#options;
    if (message.kind === 'end') {
      for (const client of local()) if (client.number === message.number) client.end('ended by an administrator');
      return;
    }
    if (message.kind === 'bye') {
      this.#runs.delete(node);
      this.#gone(node, 'stopped');
      return this.#writeOffs.lost({ node, run, clients: [], messageMs: steadyMs() }, this.#living);
    }
    if (message.kind === 'state') return this.#takeState(message);
    const peer = this.#peers.get(node);
    const missed = message.kind === 'change' ? revision - 1 : revision;
    if (peer === undefined || peer.run !== run || peer.revision !== missed) {
      this.#sayState(true, subjects.clientsOf(node));
      return;
    }
    const atMs = steadyMs();
    Object.assign(peer, { heardMs: atMs, messageMs: atMs, revision, isSettled: message.isSettled });
    if (message.kind === 'change') {
      for (const card of message.cards) clients.put(node, card);
      this.#remove(message.left);
      this.#nodes.heard(node, undefined);
      return;
    }
    this.#nodes.heard(node, message.memoryBytes);
    this.#options.reached(node, run, message.sequence);
    for (const [number, lastReadMs, processed] of message.seen) clients.get(number)?.seen(lastReadMs, processed);
  }

  #takeState(message: Extract<Message, { kind: 'state' }>): void {
    const { node, run, revision, cards, wantsState, announcement, absent, isSettled } = message;
    const { clients, steadyMs, log, joined } = this.#options;
    this.#nodes.announced(node, announcement);
    this.#nodes.learn(absent.filter((each) => each.node !== this.#options.node));
    const before = this.#peers.get(node);
    if (before === undefined) log.info('mesh.node_joined', { node, clients: cards.length });
    const atMs = steadyMs();
    const joinedMs = before?.run === run ? before.joinedMs : atMs;
    this.#peers.set(node, { run, revision, heardMs: atMs, joinedMs, messageMs: atMs, isSettled });
    const isReplaced = this.#runs.has(node) && this.#runs.get(node) !== run;
    this.#runs.set(node, run);
    const numbers = new Set(cards.map(({ number }) => number));
    const old = clients.of(node).filter(({ number }) => !numbers.has(number));
    for (const card of cards) clients.put(node, card);
    this.#remove(old.map(({ number }) => number));
    if (before !== undefined && before.run !== run)
      this.#writeOffs.lost({ node, run: before.run, clients: old, messageMs: before.messageMs }, this.#living);
    this.#writeOffs.back(node, run);
    if (wantsState) this.#sayState(false, subjects.clientsOf(node));
    joined(node, run, { wantsState, isReplaced });
  }

  #remove(numbers: readonly number[]): void {
    const removed = numbers.flatMap((number) => this.#options.clients.remove(number) ?? []);
    for (const client of removed) this.#options.left(client);
  }

  #gone(node: string, state: 'stopped' | 'lost'): void {
    this.#peers.delete(node);
    this.#nodes.ended(node, state);
    this.#remove(this.#options.clients.of(node).map(({ number }) => number));
  }

  #lost(node: string, { run, messageMs }: Peer): void {
    const { clients, log } = this.#options;
    const own = clients.of(node);
    log.warn('mesh.node_lost', { node, clients: own.length });
    this.#gone(node, 'lost');
    this.#writeOffs.lost({ node, run, clients: own, messageMs }, this.#living);
  }

  /**
   * Also of two nodes that fail together, each counts as gone. Who has joined since `knownMs` does
   * not know whom the others had then.
   */
  readonly #living = (knownMs: number): string[] => {
    const atMs = this.#options.steadyMs();
    const living = [...this.#peers].filter(
      ([, { heardMs, joinedMs }]) => atMs - heardMs <= DEAF_MS && joinedMs <= knownMs,
    );
    return living.map(([node]) => node);
  };
}
