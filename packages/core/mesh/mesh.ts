// Connects the stream of this node with the other nodes: events, clients, and the newest reports of
// those whom somebody here hears.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { z } from 'zod';
import type { Subscription } from '../model/parts.ts';
import type { Presence, Stamp, StreamDevice } from '../model/stream.ts';
import { type Client, placesOf, type Redeliver } from '../stream/client.ts';
import { type LocalClients, meet, type OtherNodes, type RemoteClient, type SentTo } from '../stream/other-nodes.ts';
import type { NodeRun, WorkingNodes } from '../store/node-sessions.ts';
import type { Outgoing } from '../stream/outboxes.ts';
import type { Bus } from './bus.ts';
import { type Batch, decodeMessage, JSON_START, type MeshEvent } from './messages.ts';
import { HeardNodes, questionSchema } from './heard.ts';
import type { Announcement } from './nodes.ts';
import { Peers } from './peers.ts';
import { Relayed } from './relayed.ts';
import { RemoteClients } from './remote-clients.ts';
import { type Missed, Sender } from './sender.ts';
import { subjects } from './subjects.ts';

export interface MeshOptions extends NodeRun {
  /** From 0: the numbers of clients tell the nodes apart. */
  index: number;
  /** What this node is, now. */
  announcement: () => Announcement;
  bus: Bus;
  redeliver: Redeliver;
  /** `atMs` since 1970. */
  stampAt: (atMs: number) => Stamp;
  /** Another node has told something that is no event. */
  control: (message: Buffer) => void;
  /** Something of that was missed for good. */
  missed: () => void;
  /** A node is there which may have missed something. */
  joined: (node: string) => void;
  /** A node was lost with clients on it, or they are still there: called on one other node. */
  went: (who: Presence) => void;
  came: (who: Presence) => void;
  working: WorkingNodes;
  log: Log;
  now: () => Date;
  steadyMs: () => number;
}

type RelayedFrom = Pick<MeshEvent, 'sender' | 'isReport'> & { event: Relayed };

/** More than the milliseconds since 1970: no number comes back after a restart. */
const NUMBERS_PER_NODE = 2 ** 44;
const replayedSchema = z.object({ replayed: z.object({ node: z.string(), upTo: z.number(), isWhole: z.boolean() }) });
const SUBSCRIPTION = /^tls:(\d+)$/;

export class Mesh implements OtherNodes {
  readonly #options: MeshOptions;
  readonly #clients = new RemoteClients();
  readonly #sender: Sender;
  readonly peers: Peers;
  #local: LocalClients | undefined;
  readonly #wanted = new Set<number>();
  readonly #subscribed = new Map<number, () => void>();
  #isInterestChanged = false;
  readonly #heard: HeardNodes;

  constructor(options: MeshOptions) {
    this.#options = options;
    const { node, bus, log, now } = options;
    this.#sender = new Sender({ node, bus, nodesOf: (places) => this.#clients.nodesOf(places), log, now });
    this.#heard = new HeardNodes({ ...options, wanted: this.#wanted });
    this.peers = new Peers({
      ...options,
      clients: this.#clients,
      local: () => this.#local?.all() ?? [],
      left: (client) => this.#local?.leftElsewhere(client),
      sequence: () => this.#sender.sequence,
      reached: (...given) => this.#heard.reached(...given),
      joined: (other, ...given) => {
        this.#heard.joined(other, ...given);
        options.joined(other);
      },
      schedule: () => this.#sender.schedule(),
    });
    this.#sender.onTurn = () => {
      this.#followInterest();
      this.peers.flush();
    };
  }

  get firstNumber(): number {
    const { index, now } = this.#options;
    return index * NUMBERS_PER_NODE + now().getTime();
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Begins to talk with the other nodes, for these clients. */
  start(local: LocalClients): void {
    this.#local = local;
    const { bus, node } = this.#options;
    bus.subscribe(subjects.all, (message) => this.#take(message));
    bus.subscribe(subjects.node(node), (message) => {
      if (message[0] === JSON_START) this.#takeQuestion(message);
      else this.#take(message);
    });
    bus.subscribe(subjects.reports, (message) => this.#takeQuestion(message));
    bus.subscribe(subjects.control, this.#options.control);
    bus.subscribe(subjects.replay(node), (message) => this.#takeReplay(message));
    bus.onChange(() => this.#heard.cut());
    this.peers.start();
  }

  /** To be called often: looks whether the bus answers, and asks again for what was missed. */
  async look(): Promise<void> {
    await this.#options.bus.fence();
    this.peers.proven();
    this.#heard.look();
  }

  /** Something that is no event. It reaches each node, also one that is cut off now. */
  tell(message: Buffer): void {
    this.#sender.tell(message);
  }

  toPlaces(event: Outgoing, places: readonly number[], sent: SentTo = {}): void {
    if (places.length > 0) this.#sender.toPlaces(event, places, headOf(sent));
  }

  toClients(event: Outgoing, clients: readonly RemoteClient[], places: readonly number[] | undefined): void {
    for (const [node, found] of Map.groupBy(clients, (client) => client.node)) {
      const numbers = found.map(({ number }) => number);
      this.#sender.toNode(event, node, { clients: numbers, places, isAnswer: false }, headOf({}));
    }
  }

  toEverybody(event: Outgoing): number {
    this.#sender.toEverybody(event, headOf({}));
    return this.#clients.size;
  }

  ofUid(uid: string): readonly RemoteClient[] {
    return this.#clients.ofUid(uid);
  }

  ofCallsign(callsign: string): readonly RemoteClient[] {
    return this.#clients.ofCallsign(callsign);
  }

  ofDevice(device: StreamDevice): readonly RemoteClient[] {
    return this.#clients.ofDevice(device);
  }

  reportsFor(client: Client, heardBefore: readonly number[] = []): Iterable<Outgoing> {
    return this.#clients.reports(placesOf(client.memberships, 'OUT'), heardBefore);
  }

  changed(client: Client): void {
    this.peers.changed(client);
  }

  /** After what it has sent: its last position comes before the notice that it is gone. */
  left(client: Client): void {
    this.#sender.publishOpen();
    this.peers.left(client);
  }

  /** Counts at the end of the turn: a client whose groups change leaves its places first. */
  interest(place: number, isWanted: boolean): void {
    if (isWanted) this.#wanted.add(place);
    else this.#wanted.delete(place);
    this.#isInterestChanged = true;
    this.#sender.schedule();
  }

  subscriptions(): Subscription[] {
    return [...this.#clients.all()].map((client) => client.subscription());
  }

  end(uid: string): boolean {
    const number = Number(SUBSCRIPTION.exec(uid)?.[1] ?? Number.NaN);
    const client = this.#clients.get(number) ?? this.#clients.ofUid(uid).at(-1);
    if (client !== undefined) this.peers.end(client);
    return client !== undefined;
  }

  /** Tells the others that its clients have gone. */
  async close(): Promise<void> {
    this.#sender.flush();
    this.peers.close();
    await this.#options.bus.close();
  }

  #followInterest(): void {
    if (!this.#isInterestChanged) return;
    this.#isInterestChanged = false;
    const { bus } = this.#options;
    const added = [...this.#wanted].filter((place) => !this.#subscribed.has(place));
    for (const place of added)
      this.#subscribed.set(
        place,
        bus.subscribe(subjects.group(place), (message) => this.#take(message)),
      );
    for (const [place, end] of this.#subscribed)
      if (!this.#wanted.has(place)) {
        end();
        this.#subscribed.delete(place);
      }
    this.#clients.forgetReports((place) => this.#wanted.has(place));
    this.#heard.askFor(added, subjects.reports);
  }

  /** Another node wants the newest reports of these groups. */
  #takeQuestion(message: Buffer): void {
    this.#guarded(message, () => this.#answer(message));
  }

  #answer(message: Buffer): void {
    const read = questionSchema.parse(JSON.parse(message.toString('utf8')));
    if (read.after !== undefined) return this.#replay({ ...read, after: read.after });
    for (const client of this.#local?.all() ?? []) {
      const latest = client.shown?.latest;
      if (latest?.isKept !== true || !meet(client.audience.places, read.places)) continue;
      const target = { places: client.audience.places, clients: undefined, isAnswer: true };
      this.#sender.toNode(latest, read.node, target, headOf({ sender: client, isReport: true }));
    }
  }

  #replay({ node: to, places, ...missed }: z.infer<typeof questionSchema> & Missed): void {
    const { node, bus } = this.#options;
    const own = [subjects.all, subjects.control, subjects.node(to)];
    const wanted = new Set([...own, ...places.map((place) => subjects.group(place))]);
    const replayed = this.#sender.replay(subjects.replay(to), missed, (subject) => wanted.has(subject));
    bus.publish(subjects.replay(to), Buffer.from(JSON.stringify({ replayed: { node, ...replayed } })));
  }

  #takeReplay(message: Buffer): void {
    if (message[0] !== JSON_START) return this.#take(message, true);
    this.#guarded(message, () => {
      const end = replayedSchema.safeParse(JSON.parse(message.toString('utf8')));
      if (!end.success) return this.#options.control(message);
      this.#heard.replayed(end.data.replayed);
    });
  }

  /** A second copy comes when it went to several groups of this node, or once more by a replay. */
  #take(message: Buffer, isReplay = false): void {
    this.#guarded(message, () => {
      const read = decodeMessage(message);
      const parts = this.#heard.take(read, isReplay);
      if (parts === undefined) return;
      if (!('index' in read)) return this.#relay(read, isReplay);
      const whole = parts.take(read);
      const large = whole && decodeMessage(whole);
      if (large !== undefined && !('index' in large)) this.#relay(large, isReplay);
    });
  }

  /** Rule `unreadableMessage`: a message that is none of ours is logged and dropped. */
  #guarded(message: Buffer, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#options.log.error('mesh.message_unreadable', { error: messageOf(error), bytes: message.length });
    }
  }

  #relay({ events, places, clients, isAnswer, atMs }: Batch, isReplay: boolean): void {
    const sentMs = isReplay ? atMs : undefined;
    const stamp = this.#options.stampAt(atMs);
    const relayed = events.map(({ xml, sender, isReport, except }) => {
      return { event: new Relayed(xml, stamp, this.#options.redeliver), sender, isReport, except };
    });
    if (isAnswer) for (const each of relayed) this.#takeAnswer(each, places ?? []);
    else if (clients !== undefined)
      for (const { event } of relayed) this.#local?.relayTo(event, clients, places, sentMs);
    else if (places === undefined) for (const { event } of relayed) this.#local?.relayToEverybody(event, sentMs);
    else {
      this.#keepLatest(relayed);
      this.#local?.relay(relayed, places, sentMs);
    }
  }

  /** Of many reports of a sender the last one is copied. */
  #keepLatest(relayed: readonly RelayedFrom[]): void {
    const newest = new Map(relayed.filter(({ isReport }) => isReport).map(({ sender, event }) => [sender, event]));
    for (const [sender, event] of newest) {
      const client = this.#clients.get(sender);
      if (client !== undefined) client.latest = event.kept();
    }
  }

  /** Whoever hears a client whose report is known has it already. */
  #takeAnswer({ sender, event }: RelayedFrom, places: readonly number[]): void {
    const client = this.#clients.get(sender);
    if (client === undefined || client.latest !== undefined) return;
    const kept = event.kept();
    client.latest = kept;
    this.#local?.relay([{ event: kept }], places);
  }
}

function headOf({ sender, isReport = false, except }: SentTo): Omit<MeshEvent, 'xml'> {
  return { sender: sender?.number ?? 0, isReport, except };
}
