// Checks CoT end to end: a service account signs in, connects and sends like a device.
// It notices when every port answers but no device can work.

import { rounded } from '@holdfast/kit/format';
import { type NodeProbe, runNodeProbe } from '../../devices/connections/node-probe.ts';
import { type ProbeStage, runProbe, type StageResult } from '../../devices/connections/probe.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { AFTER_FAILURE_SECONDS, healthModule } from '../module.ts';

interface ProbeData {
  stages: StageResult[];
  /** Connecting, sending and receiving; null if the probe did not get that far. */
  latency_seconds: number | null;
  failed_stage: ProbeStage | null;
  /** An event from each of several core nodes to the next; only if there are several. */
  nodes?: NodeProbe[];
}

const LATENCY: readonly ProbeStage[] = ['connect', 'send', 'receive'];

export const probe = healthModule<ProbeData>({
  name: 'probe',
  /** The probe itself ends within 30 s, the one of the nodes within 20 s. */
  withinMs: 53_000,

  remedy: [
    'Check the part behind the failed stage. account and bind: the identity provider and its directory. groups: the directory. certificate and connect: the certificate of svc_probe. send and receive: the core. store: its database.',
    'A directory without groups started before its provider: restart it (docker compose restart NAME, or ./scripts/stop.sh --data DIR and start again).',
    'If svc_probe has no usable certificate or key, the job keep-service-certificates replaces both within 5 minutes; a restart of management does it at once. If neither helps, its log (or DIR/logs/management.log) names the reason.',
    "If events don't arrive or take long, read the core's log. Check its load and memory, and the modules database and disk.",
  ],

  async read(monitored) {
    const stages = await runProbe(monitored);
    const failed = stages.find(({ ok }) => !ok);
    const timed = stages.filter(({ stage }) => LATENCY.includes(stage));
    const isThrough = timed.length === LATENCY.length && timed.every(({ ok }) => ok);
    const milliseconds = timed.reduce((sum, each) => sum + each.milliseconds, 0);
    const nodes = failed === undefined ? await runNodeProbe(monitored) : undefined;
    return {
      stages,
      latency_seconds: isThrough ? rounded(milliseconds / 1000, 3) : null,
      failed_stage: failed?.stage ?? null,
      ...(nodes && { nodes }),
    };
  },

  findings({ stages, latency_seconds: latency, nodes = [] }, thresholds) {
    return [
      ...stages.flatMap(({ stage, problem }) => (problem === null ? [] : [failure(stage, problem)])),
      ...(latency === null ? [] : [slowness('end to end', latency, limitsOf(thresholds, 'latency_'))]),
      ...nodes.flatMap((each) => nodeFindings(each, limitsOf(thresholds, 'latency_'))),
    ];
  },

  well: ({ latency_seconds: latency, nodes }) =>
    `A test event arrived after ${latency ?? 0} s and was stored.${nodes === undefined ? '' : ` Each of ${nodes.length} nodes reached the next.`}`,

  // Facts do not count as failures, and pass as well.
  againSeconds: ({ failed_stage }) => (failed_stage === null ? undefined : AFTER_FAILURE_SECONDS),

  trend: {
    name: 'end to end',
    unit: 'seconds',
    limits: (thresholds) => limitsOf(thresholds, 'latency_'),
    figureOf: ({ latency_seconds }) => latency_seconds,
  },
});

const FACTS: readonly ProbeStage[] = ['certificate', 'store'];

/** Something missing is a fact; a single failure may be chance. */
function failure(stage: ProbeStage, problem: string): Finding {
  const says = `${stage}: ${problem.replace(/\.$/, '')}`;
  return FACTS.includes(stage) ? { kind: 'fact', status: 'critical', says } : { kind: 'failure', says };
}

interface LatencyLimits {
  warning: number;
  critical: number;
}

function nodeFindings({ node, to, milliseconds, problem }: NodeProbe, limits: LatencyLimits): Finding[] {
  const remedy = 'Read the logs of both nodes and of NATS, and see the module core.';
  if (problem !== null) return [{ kind: 'failure', says: `node ${node}: ${problem.replace(/\.$/, '')}`, remedy }];
  return milliseconds === null ? [] : [slowness(`node ${node} to ${to}`, milliseconds / 1000, limits)];
}

function slowness(subject: string, seconds: number, limits: LatencyLimits): Finding {
  return {
    kind: 'figure',
    subject,
    value: seconds,
    limits,
    says: `${seconds} s`,
    format: (limit) => `${limit} s`,
  };
}
