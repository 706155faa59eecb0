// Checks that the core answers on its API, enrollment and streaming ports, how much memory it uses,
// and reports the load of its stream. Of several core nodes it checks each.

import { messageOf } from '@holdfast/kit/app-error';
import { formatBytes, percentageOf, rounded } from '@holdfast/kit/format';
import type { CoreStatus } from '../../core/port.ts';
import { oldestSchema } from '../../core/releases.ts';
import type { TlsEndpoint } from '../../host/port.ts';
import type { Finding } from '../evaluate.ts';
import { healthModule } from '../module.ts';
import type { Monitored } from '../monitored.ts';
import { type NodeData, nodeFindings, nodesOf, nodesSentence } from './core-nodes.ts';

type Endpoint = 'API' | 'enrollment' | 'stream';

interface EndpointState {
  name: Endpoint;
  /** Null if its address is not known. */
  address: string | null;
  error: string | null;
}

interface CoreData {
  version: string | null;
  started_at: string | null;
  memory_used_bytes: number | null;
  /** Null if the core reports none. */
  memory_cap_bytes: number | null;
  memory_pct: number | null;
  /** On the stream, with the probe's; null if the core doesn't report it, as a release. */
  clients: number | null;
  max_clients: number | null;
  /** Positions of each uid are passed on once in so many seconds; 0: each one. */
  thinning_seconds: number | null;
  /** Of a release: the newest migration of its database. Null if unknown. */
  schema: number | null;
  doors: EndpointState[];
  /** The node that was asked; with the next two only if there are several. */
  node?: string;
  /** Whether that node reaches the others. */
  bus_up?: boolean;
  nodes?: NodeData[];
}

/** Above this, a Java process spends its time on garbage collection. */
const MEMORY_WARNING_PCT = 90;
const CLIENTS_WARNING = 0.9;

const VARIABLES: Record<Endpoint, string> = {
  API: 'CORE_API_URL',
  enrollment: 'CORE_ENROLLMENT_URL',
  stream: 'CORE_STREAMING_URL',
};

export const core = healthModule<CoreData>({
  name: 'core',

  remedy: [
    'Check that the core is running (docker compose ps, or pids in DIR/stack.json). Read its log (docker compose logs --tail 100 NAME, or DIR/logs/core.log) and restart it. A TAK Server takes some minutes to start.',
    'If only the API rejects us, the certificate of svc_api is missing, expired or revoked. See the module certificates.',
    'If it is out of memory, give it more in its environment, or find the cause: many clients, large missions or a slow database (see the modules database and disk).',
  ],

  async read({ core: api, coreDatabase, tls, wanted: { coreEndpoints: places } }) {
    const [requested, enrollment, streaming, facts] = await Promise.all([
      places.api === undefined ? undefined : statusOf(api),
      endpointOf('enrollment', places.enrollment, tls),
      endpointOf('stream', places.streaming, tls),
      // Rule `loadIsExtra`: an API that fails is reported by its status.
      places.api === undefined ? undefined : api.stream().catch(() => undefined),
    ]);
    const status = requested?.status;
    const [schema, nodes] = await Promise.all([
      status === undefined ? null : schemaOf(status, coreDatabase),
      facts?.cluster === undefined ? undefined : nodesOf(facts.cluster, tls),
    ]);
    const used = status?.memory?.usedBytes ?? null;
    const cap = status?.memory?.capBytes ?? null;
    return {
      version: status?.version ?? null,
      started_at: status?.startedAt ?? null,
      memory_used_bytes: used,
      memory_cap_bytes: cap,
      memory_pct: used === null || cap === null ? null : rounded(percentageOf(used, cap), 1),
      clients: facts?.clients ?? null,
      max_clients: facts?.maxClients ?? null,
      thinning_seconds: facts?.thinningSeconds ?? null,
      schema,
      doors: [
        { name: 'API', address: places.api?.name ?? null, error: requested?.error ?? null },
        enrollment,
        streaming,
      ],
      ...nodes,
    };
  },

  findings(data) {
    return [
      ...data.doors.flatMap(endpointFinding),
      ...schemaFindings(data),
      ...memoryFindings(data),
      ...clientFindings(data),
      ...nodeFindings(data),
    ];
  },

  well: ({ version, memory_used_bytes: used, memory_pct: pct, thinning_seconds: seconds, nodes }) => {
    const memory = used === null ? '' : ` Memory used: ${formatBytes(used)}${pct === null ? '' : ` (${pct} %)`}.`;
    return `Core ${version ?? ''} answers on its API, enrollment and streaming ports.${memory}${thinningSentence(seconds)}${nodesSentence(nodes)}`;
  },

  trend: {
    name: 'memory used',
    unit: 'percent',
    limits: () => ({ warning: MEMORY_WARNING_PCT }),
    figureOf: ({ memory_pct }) => memory_pct,
  },
});

function thinningSentence(seconds: number | null): string {
  return seconds === null || seconds === 0 ? '' : ` Thinning: each position at most every ${seconds} s.`;
}

async function statusOf(api: Monitored['core']): Promise<{ status: CoreStatus | undefined; error: string | null }> {
  try {
    return { status: await api.status(), error: null };
  } catch (error) {
    return { status: undefined, error: messageOf(error).replace(/\.$/, '') };
  }
}

/** Null if it can't be read: the module database reports why. */
async function schemaOf({ version }: CoreStatus, database: Monitored['coreDatabase']): Promise<number | null> {
  if (oldestSchema(version) === undefined) return null;
  try {
    return (await database.server()).schema_version;
  } catch {
    return null;
  }
}

/** Such a release answers everywhere, but stores nothing of what it receives. */
function schemaFindings({ version, schema }: CoreData): Finding[] {
  const oldest = oldestSchema(version ?? '');
  if (schema === null || oldest === undefined || schema >= oldest) return [];
  const says = `TAK Server ${version} needs schema ${oldest} of its database, which has ${schema}: it can't store what it receives`;
  const remedy =
    'Restart the database, whose start runs the schema tool of the release (docker compose restart core-database), and read its log. Then restart the core.';
  return [{ kind: 'fact', status: 'critical', says, remedy }];
}

/** The module tls checks the certificate. */
async function endpointOf(
  name: Endpoint,
  place: TlsEndpoint | undefined,
  tls: Monitored['tls'],
): Promise<EndpointState> {
  if (place === undefined) return { name, address: null, error: null };
  const { reachable, error } = await tls.inspect(place);
  return { name, address: place.name, error: reachable ? null : (error ?? 'does not answer') };
}

function endpointFinding({ name, address, error }: EndpointState): Finding[] {
  if (address === null) {
    const says = `the ${name} of the core is not checked: ${VARIABLES[name]} is not set`;
    return [{ kind: 'fact', status: 'warning', says }];
  }
  if (error === null) return [];
  return [
    {
      kind: 'failure',
      says: name === 'API' ? `API of the core: ${error}` : `${name} of the core: ${address} ${error}`,
    },
  ];
}

function clientFindings({ clients, max_clients: max }: CoreData): Finding[] {
  if (clients === null || max === null || clients <= max * CLIENTS_WARNING) return [];
  const says = `the stream has ${clients} of at most ${max} connections; beyond that it refuses devices`;
  const remedy =
    'Give the core more memory or file descriptors (ulimit -n, LimitNOFILE); its log names what limits it. Then restart it.';
  return [{ kind: 'fact', status: 'warning', says, remedy }];
}

/** Empty if the core did not answer at all: another finding says that. */
function memoryFindings({ version, memory_used_bytes: used, memory_pct: pct }: CoreData): Finding[] {
  if (version === null) return [];
  if (used === null) return [{ kind: 'fact', status: 'note', says: 'the core does not report its memory use' }];
  if (pct === null || pct <= MEMORY_WARNING_PCT) return [];
  const says = `the core uses ${pct} % of its memory limit (warning above ${MEMORY_WARNING_PCT} %)`;
  return [{ kind: 'fact', status: 'warning', says }];
}
