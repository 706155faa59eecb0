// Whether CoT gets from one end to the other: a service account goes the whole way of a device. Every port may answer and
// nobody be able to work all the same; this is what notices.

import { rounded } from '@holdfast/kit/format';
import { type ProbeStage, runProbe, type StageResult } from '../../devices/connections/probe.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { healthModule } from '../module.ts';

interface ProbeData {
  stages: StageResult[];
  /** Connecting, sending and receiving; null when it did not get that far. */
  latency_seconds: number | null;
  failed_stage: ProbeStage | null;
}

const LATENCY: readonly ProbeStage[] = ['connect', 'send', 'receive'];

export const probe = healthModule<ProbeData>({
  name: 'probe',
  /** The probe itself ends after 30 s at the latest. */
  withinMs: 33_000,

  remedy: [
    'The message names the stage that failed: account and bind are the identity provider and its directory, groups the directory, certificate and connect the certificate of svc_probe, send and receive the core, store its database.',
    'A directory that shows no groups has come up before its provider: restart it (docker compose restart NAME, or ./scripts/stop.sh --data DIR and start again).',
    'If svc_probe has no usable certificate or key, the job keep-service-certificates makes both anew within 5 minutes by itself, a restart of management at once; if neither does, its log (or DIR/logs/management.log) says why.',
    'If events do not come out or take long, read the log of the core, see its load and memory, and the modules database and disk.',
  ],

  async read(monitored) {
    const stages = await runProbe(monitored);
    const failed = stages.find(({ ok }) => !ok);
    const timed = stages.filter(({ stage }) => LATENCY.includes(stage));
    const isThrough = timed.length === LATENCY.length && timed.every(({ ok }) => ok);
    const milliseconds = timed.reduce((sum, each) => sum + each.milliseconds, 0);
    return {
      stages,
      latency_seconds: isThrough ? rounded(milliseconds / 1000, 3) : null,
      failed_stage: failed?.stage ?? null,
    };
  },

  findings({ stages, latency_seconds: latency }, thresholds) {
    return [
      ...stages.flatMap(({ stage, problem }) => (problem === null ? [] : [failure(stage, problem)])),
      ...(latency === null ? [] : [slowness(latency, limitsOf(thresholds, 'latency_'))]),
    ];
  },

  well: ({ latency_seconds: latency }) =>
    `An event went the whole way of a device, came out after ${latency ?? 0} s and was stored.`,

  trend: {
    name: 'from end to end',
    unit: 'seconds',
    limits: (thresholds) => limitsOf(thresholds, 'latency_'),
    figureOf: ({ latency_seconds }) => latency_seconds,
  },
});

const FACTS: readonly ProbeStage[] = ['certificate', 'store'];

/** What is missing is a fact; what fails once may be chance. */
function failure(stage: ProbeStage, problem: string): Finding {
  const says = `${stage}: ${problem.replace(/\.$/, '')}`;
  return FACTS.includes(stage) ? { kind: 'fact', status: 'critical', says } : { kind: 'failure', says };
}

function slowness(seconds: number, limits: { warning: number; critical: number }): Finding {
  return {
    kind: 'figure',
    subject: 'from end to end',
    value: seconds,
    limits,
    says: `${seconds} s`,
    format: (limit) => `${limit} s`,
  };
}
