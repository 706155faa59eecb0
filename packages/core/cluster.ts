// Makes this core one node of a cluster: its part of the mesh, and what it rereads after a change
// on another node.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@holdfast/kit/app-error';
import type { CoreCluster } from '@holdfast/kit/core-wire';
import type { Lockout } from '@holdfast/kit/lockout';
import type { Log } from '@holdfast/kit/log';
import { nameKey } from '@holdfast/kit/names';
import { CORE_VERSION } from './admin/server.ts';
import type { CorePortNumbers } from './core-ports.ts';
import type { PeopleGroups } from './groups/own-groups.ts';
import type { Bus } from './mesh/bus.ts';
import { type Change, Control } from './mesh/control.ts';
import { Freshness } from './mesh/freshness.ts';
import { Lockouts } from './mesh/lockouts.ts';
import { Mesh } from './mesh/mesh.ts';
import { settle } from './mesh/settle.ts';
import { subjects } from './mesh/subjects.ts';
import { ClusterEmergencies } from './mesh/emergencies.ts';
import { announcing } from './mesh/nodes.ts';
import type { CoreFetch, RefusedConnection, Retention, Revocations } from './model/parts.ts';
import type { PresenceLog, StreamArrival, StreamDevice } from './model/stream.ts';
import { CoreFault } from './http/answers.ts';
import type { RetentionRuns } from './retention/retention-service.ts';
import type { KeptRevocations } from './revocations.ts';
import type { Emergencies } from './services/stream-services.ts';
import { framings, stamps } from './stream/framings.ts';
import type { Injectors } from './stream/injectors.ts';
import type { LocalClients } from './stream/other-nodes.ts';
import type { Repeater } from './stream/repeater.ts';
import type { Stream } from './stream/stream.ts';
import type { NodeRun, WorkingNodes } from './store/node-sessions.ts';
import type { PresenceStore } from './store/presence.ts';
import { SharedChanges } from './shared-changes.ts';

export interface ClusterOptions extends NodeRun {
  /** From 0. The first node alone runs retention and renews certificates. */
  index: number;
  bus: Bus;
  /** Files of this node alone. */
  directory: string;
  /** The name or address under which the other parts of the stack reach it. */
  host: string;
}

export interface ClusterParts extends Pick<ClusterOptions, 'node' | 'run' | 'index' | 'bus' | 'host'> {
  ports: CorePortNumbers;
  maxClients: number;
  nodeId: string;
  people: PeopleGroups;
  revocations: KeptRevocations;
  working: WorkingNodes;
  log: Log;
  now: () => Date;
  steadyMs: () => number;
}

/** What is connected to the mesh once the stream exists. */
export interface ClusterStream {
  stream: Pick<Stream, 'regroup' | 'forgetGroups'>;
  relay: LocalClients | undefined;
  injectors: Pick<Injectors, 'replace'>;
  repeater: Pick<Repeater, 'onSaw' | 'sawElsewhere' | 'periodMs'>;
  retention: Pick<Retention, 'reload'>;
  /** As the database has them now. */
  readInjectors: () => Promise<Parameters<Injectors['replace']>[0]>;
}

const MAX_EVENT_BYTES = 8 * 1024 * 1024;
const PEERS_WITHIN_MS = 2_000;
const CUT_OFF = 'This node is cut off from the others and from the database';

export class ClusterNode {
  readonly mesh: Mesh;
  readonly changes = new SharedChanges((change) => this.#control.tell(change));
  readonly #parts: ClusterParts;
  readonly #control: Control;
  readonly #freshness: Freshness;
  #joined: ClusterStream | undefined;
  /** Whose groups have changed and could not be read since. */
  readonly #unread = new Set<string>();
  #reading: Promise<void> | undefined;
  #readingTable: Promise<void> | undefined;
  #areInjectorsOld = false;
  #isClosed = false;
  /** Passwords that were wrong on any node count on each. */
  readonly #lockouts: Lockouts;
  /** Clients of lost nodes, once the presence log is there. */
  #presence: Pick<PresenceLog, 'came' | 'went'> | undefined;

  constructor(parts: ClusterParts) {
    const { node, run, index, bus, nodeId, working, log, now, steadyMs } = parts;
    this.#parts = parts;
    this.#lockouts = new Lockouts(steadyMs, (address) => this.#control.tell({ changed: 'lockout', address }));
    this.mesh = new Mesh({
      node,
      run,
      index,
      announcement: announcing({ ...parts, version: CORE_VERSION }),
      bus,
      redeliver: framings(MAX_EVENT_BYTES).redeliver,
      stampAt: stamps(nodeId),
      control: (message) => this.#control.take(message),
      missed: () => this.#freshness.cut(),
      joined: (other) => {
        for (const counted of this.#lockouts.counted()) this.#control.tellOne(other, { changed: 'lockouts', counted });
      },
      went: (who) => this.#presence?.went(who, now()),
      came: (who) => this.#presence?.came(who, now()),
      working,
      log,
      now,
      steadyMs,
    });
    this.#control = new Control({
      tell: (message) => this.mesh.tell(message),
      mention: (message, other) =>
        bus.publish(other === undefined ? subjects.control : subjects.replay(other), message),
      reread: (change) => this.#follow(change),
      failed: () => this.#freshness.cut(),
      log,
    });
    this.#freshness = new Freshness({
      bus,
      settled: () => this.#control.settled(),
      forget: () => {
        parts.people.forgetAll();
        this.#joined?.stream.forgetGroups();
      },
      reread: () => parts.revocations.reread(),
      rereadAll: () => this.#rereadAll(),
      log,
      steadyMs,
    });
  }

  get node(): string {
    return this.#parts.node;
  }

  /** As this node sees it. */
  state(): CoreCluster {
    const { node, bus } = this.#parts;
    return { node, isBusUp: bus.isUp, nodes: this.mesh.peers.states() };
  }

  start(joined: ClusterStream): void {
    this.#joined = joined;
    if (joined.relay === undefined) throw new Error('the stream of a cluster has a relay');
    joined.repeater.onSaw = (seen) => this.#control.tell({ changed: 'alarm', ...seen, node: this.node });
    this.mesh.start(joined.relay);
    this.#freshness.start(async () => {
      // They stay unread, and are read with the next call.
      this.readGroups().catch(() => undefined);
      if (this.#areInjectorsOld) void this.#readInjectors().catch(() => undefined);
      void this.#readTable();
      await this.mesh.look();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#freshness.close();
    await this.mesh.close();
  }

  /** Clients of other nodes are still there when this one starts: they have not gone with it. */
  presence(store: PresenceStore, log: Pick<PresenceLog, 'came' | 'went'>): PresenceStore {
    this.#presence = log;
    return {
      ...store,
      // In the background: the presence log must not wait for the bus.
      everybodyWent: async (at) => {
        const { node, bus, working, log: ownLog } = this.#parts;
        void settle({
          node,
          bus,
          peers: this.mesh.peers,
          working,
          everybodyWent: () => store.everybodyWent(at, this.#present()),
          isClosed: () => this.#isClosed,
          pause: () => delay(PEERS_WITHIN_MS, undefined, { ref: false }),
          log: ownLog,
        });
      },
    };
  }

  /** The same for wrong passwords. */
  get lockout(): Lockout {
    return this.#lockouts.shared;
  }

  /** Nobody gets in on what an old state says: who was let in by it is ended by the new one. */
  admitting(
    accepted: (arrival: StreamArrival) => void,
    refused: (who: RefusedConnection) => void,
  ): (arrival: StreamArrival) => void {
    return (arrival) => {
      if (this.#freshness.isFresh) accepted(arrival);
      else
        void this.#freshness.admit().then((isAdmitted) => {
          if (isAdmitted && !arrival.socket.destroyed) return accepted(arrival);
          arrival.socket.destroy();
          const { known, clientAddress: address } = arrival;
          if (!isAdmitted && known !== undefined)
            refused({ username: known.certificate.commonName, address, reason: CUT_OFF });
        });
    };
  }

  /** The same for requests with a client certificate. */
  guarded(api: CoreFetch): CoreFetch {
    return async (request, connection) => {
      if (!this.#freshness.isFresh) {
        const isAdmitted = await this.#freshness.admit();
        const { certificate } = connection;
        if (!isAdmitted) return new Response(`${CUT_OFF}. Try again.`, { status: 503 });
        if (certificate !== undefined && this.#parts.revocations.isRevoked(certificate.serial))
          return new Response('The certificate is revoked.', { status: 403 });
      }
      return api(request, connection);
    };
  }

  /** Every node ends what it has with a certificate that one of them revokes. */
  revoking(revocations: Revocations): Revocations {
    return {
      isRevoked: (serial) => revocations.isRevoked(serial),
      refresh: () => revocations.refresh(),
      listTimes: () => revocations.listTimes(),
      revoke: async (record, options) => {
        try {
          return await revocations.revoke(record, options);
        } finally {
          this.#control.tell({ changed: 'revocations', entries: this.#parts.revocations.refused(record) });
        }
      },
    };
  }

  async regroup(usernames: readonly string[], clientUid: string | undefined): Promise<void> {
    const device = clientUid === undefined ? {} : { clientUid };
    this.#control.tell({ changed: 'groups', usernames: [...usernames], ...device });
    await this.#regroup(usernames, clientUid);
  }

  /** Those of all nodes. `own`: of this one. */
  emergencies(own: Emergencies): Emergencies {
    const { node, bus, log } = this.#parts;
    return new ClusterEmergencies({ node, bus, others: () => this.mesh.peers.nodes, log }, own);
  }

  /** Two nodes would take each other's run for one that nobody goes on with. */
  running(runs: RetentionRuns): RetentionRuns {
    if (this.#parts.index === 0) return runs;
    const text = 'Retention runs on the first node of the cluster. Start the run there.';
    return { begin: () => Promise.reject(new CoreFault('conflict', text)), runs: () => runs.runs() };
  }

  /** Those that could not be read; to be called often. The first one shows whether it works now. */
  readGroups(): Promise<void> {
    const read = async (): Promise<void> => {
      const [first, ...rest] = this.#unread;
      if (first === undefined) return;
      await this.#regroup([first], undefined);
      if (!this.#unread.has(first)) await this.#regroup(rest, undefined);
    };
    return (this.#reading ??= read().finally(() => (this.#reading = undefined)));
  }

  async #follow(change: Change): Promise<void> {
    const { people, revocations } = this.#parts;
    switch (change.changed) {
      case 'revocations':
        revocations.learn(change.entries);
        // Rule `learnedIsEnough`: the table says no more, and may be unreachable here.
        return revocations.reread().catch(() => undefined);
      case 'injectors':
        this.#areInjectorsOld = true;
        return this.#readInjectors().catch(() => undefined);
      case 'groups':
        people.forget(change.usernames);
        return this.#regroup(change.usernames, change.clientUid);
      case 'alarm':
        return this.#joined?.repeater.sawElsewhere(change, change.node < this.node);
      case 'period':
        if (this.#joined !== undefined) this.#joined.repeater.periodMs = change.ms;
        return undefined;
      case 'retention':
        return this.#joined?.retention.reload(change.file);
      case 'lockout':
        return this.#lockouts.failedElsewhere(change.address);
      case 'lockouts':
        return this.#lockouts.learn(change.counted);
    }
  }

  #present(): StreamDevice[] {
    const own = [...(this.#joined?.relay?.all() ?? [])];
    return [
      ...own.map(({ shown, username }) => ({ clientUid: shown?.uid ?? '', username })),
      ...this.mesh.subscriptions(),
    ].map(({ clientUid, username }) => ({ clientUid, username }));
  }

  /** For what a node revokes that is cut off from the others. */
  #readTable(): Promise<void> {
    const read = (): Promise<void> => this.#parts.revocations.reread().catch(() => undefined);
    return (this.#readingTable ??= read().finally(() => (this.#readingTable = undefined)));
  }

  async #regroup(usernames: readonly string[], clientUid: string | undefined): Promise<void> {
    const unread = await this.#joined?.stream.regroup(usernames, clientUid);
    for (const username of usernames) this.#unread.delete(nameKey(username));
    for (const username of unread ?? []) this.#unread.add(nameKey(username));
  }

  async #readInjectors(): Promise<void> {
    if (this.#joined === undefined) return;
    this.#joined.injectors.replace(await this.#joined.readInjectors());
    this.#areInjectorsOld = false;
  }

  async #rereadAll(): Promise<void> {
    await this.#parts.revocations.reread();
    await this.#readInjectors();
    // Rule `brokenRetentionFile`: it keeps nobody out, and what was in force stays.
    for (const file of ['policy', 'schedule', 'archive'] as const)
      await this.#follow({ changed: 'retention', file }).catch((error: unknown) =>
        this.#parts.log.warn('retention.not_reloaded', { file, error: messageOf(error) }),
      );
    const own = [...(this.#joined?.relay?.all() ?? [])].map(({ username }) => username);
    await this.#regroup([...new Set(own)], undefined);
  }
}
