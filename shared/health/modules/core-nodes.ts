// Checks each of several core nodes: whether it is there, answers on its ports, and has room.

import { formatUtc, percentageOf, rounded } from '@holdfast/kit/format';
import type { CoreCluster, CoreNode } from '@holdfast/kit/core-wire';
import type { Finding } from '../evaluate.ts';
import type { Monitored } from '../monitored.ts';
import { endpointOf } from '../wanted.ts';

export interface NodeData {
  /** `core`, `core-2`. */
  node: string;
  state: CoreNode['state'];
  up: boolean;
  heard_at: string;
  started_at: string;
  version: string;
  clients: number;
  max_clients: number;
  memory_used_bytes: number;
  memory_cap_bytes: number;
  memory_pct: number;
  api: string;
  enrollment: string;
  streaming: string;
  /** The address that does not answer, and why; null if all do. */
  error: string | null;
}

export interface NodesData {
  node?: string;
  bus_up?: boolean;
  nodes?: NodeData[];
}

const MEMORY_WARNING_PCT = 90;
const CLIENTS_WARNING = 0.9;
const BUS_REMEDY =
  'Check that NATS runs (docker compose ps nats, or pids in DIR/stack.json) and read its log (docker compose logs --tail 100 nats, or DIR/logs/nats.log). Until then each node serves its own devices alone.';
const LOST_REMEDY =
  'Its devices reconnect to the other nodes. Read its log (docker compose logs --tail 100 NAME, or DIR/logs/NAME.log) and restart it. If it is gone for good, it leaves this list a week after it was lost.';

/** The ports of all nodes but the one that answered: those are checked like a single node's. */
export async function nodesOf(
  { node: own, isBusUp, nodes }: CoreCluster,
  tls: Monitored['tls'],
): Promise<Required<NodesData>> {
  const read = nodes.map(async (each): Promise<NodeData> => {
    const isChecked = each.state === 'up' && each.node !== own && isBusUp;
    return {
      node: each.node,
      state: each.state,
      up: each.state === 'up',
      heard_at: each.heardAt,
      started_at: each.startedAt,
      version: each.version,
      clients: each.clients,
      max_clients: each.maxClients,
      memory_used_bytes: each.memoryBytes,
      memory_cap_bytes: each.memoryCapBytes,
      memory_pct: rounded(percentageOf(each.memoryBytes, each.memoryCapBytes), 1),
      api: each.api,
      enrollment: each.enrollment,
      streaming: each.streaming,
      error: isChecked ? await firstError(each, tls) : null,
    };
  });
  return { node: own, bus_up: isBusUp, nodes: await Promise.all(read) };
}

async function firstError({ api, enrollment, streaming }: CoreNode, tls: Monitored['tls']): Promise<string | null> {
  const errors = [api, enrollment, streaming].map(async (url) => {
    const { reachable, error } = await tls.inspect(endpointOf(url, 'own'));
    return reachable ? null : `${url} ${error ?? 'does not answer'}`;
  });
  return (await Promise.all(errors)).find((error) => error !== null) ?? null;
}

export function nodeFindings({ node: own = '', bus_up: isBusUp = true, nodes = [] }: NodesData): Finding[] {
  if (!isBusUp) {
    const says = `node ${own} of the core can't reach NATS: devices on other nodes don't see its devices`;
    return [{ kind: 'failure', says, remedy: BUS_REMEDY }];
  }
  return nodes.flatMap((each) => [...absence(each), ...(each.up && each.node !== own ? shortage(each) : [])]);
}

function absence({ node, state, heard_at: at, error }: NodeData): Finding[] {
  if (state === 'lost')
    return [
      { kind: 'failure', says: `node ${node} of the core was last heard at ${formatUtc(at)}`, remedy: LOST_REMEDY },
    ];
  if (state === 'stopped')
    return [{ kind: 'fact', status: 'note', says: `node ${node} of the core was stopped at ${formatUtc(at)}` }];
  return error === null ? [] : [{ kind: 'failure', says: `node ${node} of the core: ${error}` }];
}

function shortage({ node, clients, max_clients: max, memory_pct: pct }: NodeData): Finding[] {
  const found: string[] = [];
  if (clients > max * CLIENTS_WARNING) found.push(`has ${clients} of at most ${max} connections`);
  if (pct > MEMORY_WARNING_PCT) found.push(`uses ${pct} % of its memory limit (warning above ${MEMORY_WARNING_PCT} %)`);
  return found.map((says) => ({ kind: 'fact', status: 'warning', says: `node ${node} of the core ${says}` }));
}

/** Empty with one node. */
export function nodesSentence(nodes: readonly NodeData[] | undefined): string {
  if (nodes === undefined) return '';
  const clients = nodes.reduce((sum, each) => sum + each.clients, 0);
  return ` ${nodes.length} nodes with ${clients} connections.`;
}
