// Checks each of several core nodes end to end: one CoT event from each node to the next one.

import { messageOf } from '@holdfast/kit/app-error';
import { CHANNEL_PREFIX, PROBE_GROUP } from '@holdfast/kit/names';
import type { CoreNode } from '@holdfast/kit/core-wire';
import type { CoreDevices } from '../../core/devices/port.ts';
import type { Core } from '../../core/port.ts';
import { probeCertificate, type ProbeDeps, probeEvent } from './probe.ts';

export interface NodeProbe {
  /** It has sent, and `to` has received. */
  node: string;
  to: string;
  /** False also when there was no event, because `to` can't be reached. */
  ok: boolean;
  /** From sending to receiving; null if the event did not arrive. */
  milliseconds: number | null;
  /** Null when there is none. */
  problem: string | null;
}

export interface NodeProbeDeps extends Pick<ProbeDeps, 'now' | 'certificateStore' | 'clientKeys'> {
  core: Pick<Core, 'stream'>;
  coreDevices: Pick<CoreDevices, 'connect' | 'send' | 'received' | 'close'>;
}

type Reached = { connection: string } | { problem: string };

const RECEIVE_WITHIN_MS = 4_000;

/**
 * One result for each node that is up, after `runProbe` was through; undefined with fewer than two.
 * Rejects only when the core or the certificate can't be read.
 */
export async function runNodeProbe(deps: NodeProbeDeps): Promise<NodeProbe[] | undefined> {
  const nodes = (await deps.core.stream())?.cluster?.nodes.filter(({ state }) => state === 'up') ?? [];
  if (nodes.length < 2) return undefined;
  const { hash } = await probeCertificate(deps);
  const reached = await Promise.all(nodes.map((node) => reach(deps, hash, node)));
  const opened = reached.flatMap((each) => ('connection' in each ? [each.connection] : []));
  try {
    return await Promise.all(
      nodes.map(async ({ node }, index): Promise<NodeProbe> => {
        const next = (index + 1) % nodes.length;
        const [from, to] = [reached[index], reached[next]] as [Reached, Reached];
        const named = { node, to: nodes[next]?.node ?? '' };
        if ('problem' in from) return { ...named, ok: false, milliseconds: null, problem: from.problem };
        // Its own result says why.
        if ('problem' in to) return { ...named, ok: false, milliseconds: null, problem: null };
        return exchange(deps, from.connection, to.connection, named);
      }),
    );
  } finally {
    await Promise.all(opened.map((connection) => deps.coreDevices.close(connection)));
  }
}

async function reach({ coreDevices }: NodeProbeDeps, hash: string, { streaming }: CoreNode): Promise<Reached> {
  try {
    const met = await coreDevices.connect(hash, streaming);
    return 'refused' in met ? { problem: `The stream at ${streaming} refused the probe: ${met.refused}.` } : met;
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

async function exchange(
  { coreDevices, now }: NodeProbeDeps,
  from: string,
  to: string,
  named: Pick<NodeProbe, 'node' | 'to'>,
): Promise<NodeProbe> {
  const uid = crypto.randomUUID();
  const failed = (problem: string): NodeProbe => ({ ...named, ok: false, milliseconds: null, problem });
  try {
    const begunMs = now().getTime();
    await coreDevices.send(from, probeEvent(uid, PROBE_GROUP.slice(CHANNEL_PREFIX.length), now()));
    const came = await coreDevices.received(to, uid, RECEIVE_WITHIN_MS);
    if (came !== undefined)
      return { ...named, ok: true, milliseconds: Math.max(0, now().getTime() - begunMs), problem: null };
    return failed(
      `An event that was sent to this node did not arrive on ${named.to} within ${RECEIVE_WITHIN_MS / 1000} s`,
    );
  } catch (error) {
    return failed(messageOf(error));
  }
}
