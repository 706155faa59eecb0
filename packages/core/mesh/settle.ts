// Ends, at a start, the clients that the tables still have as connected.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import type { WorkingNodes } from '../store/node-sessions.ts';
import type { Bus } from './bus.ts';
import type { Peers } from './peers.ts';

export interface SettleOptions {
  node: string;
  bus: Pick<Bus, 'isUp'>;
  peers: Pick<Peers, 'nodes' | 'areSettled' | 'settle'>;
  /** Like `everybodyWent` it rejects while the database is unavailable. */
  working: WorkingNodes;
  everybodyWent: () => Promise<void>;
  isClosed: () => boolean;
  /** How long the others have to answer. */
  pause: () => Promise<void>;
  log: Log;
}

/**
 * The first node of those that start does it, unless another one was there all the time: then its
 * clients are connected, and those of a lost node are written off by it. A node that works with the
 * database and is not heard has clients that are not known: it is waited for.
 */
export async function settle(options: SettleOptions): Promise<void> {
  const { node, bus, peers, working, everybodyWent, isClosed, pause, log } = options;
  let hasFailed = false;
  for (let wasUp = bus.isUp; !isClosed(); wasUp = bus.isUp) {
    await pause();
    if (!bus.isUp || !wasUp) continue;
    if (peers.areSettled) return peers.settle();
    if (peers.nodes.some((other) => other < node)) continue;
    const isUnheard = (other: string): boolean => other !== node && !peers.nodes.includes(other);
    try {
      if ((await working()).some((other) => isUnheard(other.node))) continue;
      await everybodyWent();
      return peers.settle();
    } catch (error) {
      if (!hasFailed) log.warn('presence.not_ended', { error: messageOf(error) });
      hasFailed = true;
    }
  }
}
