// Collects metrics of health, jobs, requests and the process, from memory only.

import type { ProcessFigures, ProcessStatus } from '../host/port.ts';
import type { RequestFigures, RequestStatistics } from '../host/request-statistics.ts';
import type { JobFigures, JobStatistics } from '../jobs/port.ts';
import { type Status, type Thresholds, urgency } from '../settings/status.ts';
import { healthFigures } from './figures.ts';
import type { MetricFamily, Sample, SimpleFamily } from './open-metrics.ts';
import type { HealthCache } from './port.ts';

export interface MetricsDeps {
  release: string;
  thresholds: Thresholds;
  health: HealthCache;
  jobStatistics: JobStatistics;
  requests: RequestStatistics;
  process: ProcessStatus;
}

/** The parts of GET /api/health that are needed here. */
interface Health {
  status: Status;
  modules: Record<string, { status: Status; updated_at: string | null; data: unknown }>;
}

export async function collectMetrics(deps: MetricsDeps): Promise<MetricFamily[]> {
  const [health, jobs, requests, process] = await Promise.all([
    deps.health.current('own'),
    deps.jobStatistics.figures(),
    deps.requests.figures(),
    deps.process.figures(),
  ]);
  return [
    {
      type: 'info',
      name: 'holdfast_build',
      help: 'The running release; always 1',
      samples: [{ labels: { version: deps.release } }],
    },
    ...healthFamilies(JSON.parse(health.body) as Health, deps.thresholds),
    ...jobFamilies(jobs),
    ...requestFamilies(requests),
    ...processFamilies(process),
  ];
}

function healthFamilies({ status, modules }: Health, thresholds: Thresholds): MetricFamily[] {
  const each = (value: (name: string) => number | null | undefined): Sample[] =>
    Object.keys(modules).flatMap((module) => sampleOf({ module }, value(module)));
  return [
    gauge('holdfast_health_overall_status', 'The worst status of all modules: 0 ok, 1 note, 2 warning, 3 critical', [
      { labels: {}, value: urgency(status) },
    ]),
    gauge(
      'holdfast_health_status',
      'Status of each health module: 0 ok, 1 note, 2 warning, 3 critical',
      each((name) => modules[name] && urgency(modules[name].status)),
    ),
    gauge(
      'holdfast_health_updated_timestamp_seconds',
      'When each health module was measured last; absent before the first time',
      each((name) => secondsOf(modules[name]?.updated_at ?? null)),
    ),
    gauge(
      'holdfast_health_interval_seconds',
      'How often each health module is measured',
      each((name) => thresholds.modules[name]?.interval),
    ),
    ...healthFigures(Object.entries(modules).map(([module, { data }]) => ({ module, data }))),
  ];
}

function jobFamilies(jobs: readonly JobFigures[]): MetricFamily[] {
  const each = (value: (figures: JobFigures) => number | null): Sample[] =>
    jobs.flatMap((figures) => sampleOf({ name: figures.job }, value(figures)));
  const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);
  return [
    counter(
      'holdfast_job_runs',
      'Runs of each job in this process, including failed ones; each process counts its own',
      each(({ runs }) => runs),
    ),
    counter(
      'holdfast_job_failures',
      'Runs of each job in this process that failed',
      each(({ failures }) => failures),
    ),
    gauge(
      'holdfast_job_failures_in_row',
      'Runs of each job in this process that failed since the last one that succeeded',
      each(({ failuresInRow }) => failuresInRow),
    ),
    gauge(
      'holdfast_job_interval_seconds',
      'How often each job is to run',
      each(({ intervalSeconds }) => intervalSeconds),
    ),
    gauge(
      'holdfast_job_last_seen_timestamp_seconds',
      'When each job last ended here, or was last seen done or running elsewhere; absent before that',
      each(({ lastSeenMs }) => seconds(lastSeenMs)),
    ),
    gauge(
      'holdfast_job_last_run_timestamp_seconds',
      'When the last run of each job in this process ended',
      each(({ lastEndedMs }) => seconds(lastEndedMs)),
    ),
    gauge(
      'holdfast_job_last_success_timestamp_seconds',
      'When the last run of each job in this process that succeeded ended',
      each(({ lastSucceededMs }) => seconds(lastSucceededMs)),
    ),
    gauge(
      'holdfast_job_last_duration_seconds',
      'How long the last run of each job in this process took',
      each(({ lastSeconds }) => lastSeconds),
    ),
  ];
}

function requestFamilies({ answered, limits, counts, sumSeconds }: RequestFigures): MetricFamily[] {
  return [
    counter(
      'holdfast_http_requests',
      'HTTP requests answered, by method and status; an uncommon method is other',
      answered.map(({ method, status, count }) => ({ labels: { method, status }, value: count })),
    ),
    {
      type: 'histogram',
      name: 'holdfast_http_request_duration_seconds',
      unit: 'seconds',
      help: 'Time from request to response',
      limits,
      samples: [{ labels: {}, counts, sum: sumSeconds }],
    },
  ];
}

function processFamilies(of: ProcessFigures): MetricFamily[] {
  const one = (value: number | null): Sample[] => sampleOf({}, value);
  return [
    counter('process_cpu_seconds', 'Processor time of the process, user and system', one(of.cpuSeconds)),
    gauge('process_resident_memory_bytes', 'Resident memory', one(of.residentBytes)),
    gauge('process_open_fds', 'Open file descriptors', one(of.openFiles)),
    gauge('process_start_time_seconds', 'When the process was started', one(of.startedMs / 1000)),
    gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use', one(of.heapUsedBytes)),
    gauge('nodejs_heap_size_total_bytes', 'JavaScript heap reserved', one(of.heapTotalBytes)),
    gauge('nodejs_eventloop_lag_seconds', 'Current delay of the event loop', one(of.loopLagSeconds)),
    counter(
      'nodejs_eventloop_active_seconds',
      'Time the event loop was active: its load is this, divided by active plus idle',
      one(of.loopActiveSeconds),
    ),
    counter('nodejs_eventloop_idle_seconds', 'Time the event loop was idle', one(of.loopIdleSeconds)),
  ];
}

function sampleOf(labels: Sample['labels'], value: number | null | undefined): Sample[] {
  return value === null || value === undefined ? [] : [{ labels, value }];
}

function secondsOf(time: string | null): number | null {
  return time === null ? null : Date.parse(time) / 1000;
}

function gauge(name: string, help: string, samples: Sample[]): SimpleFamily {
  return { type: 'gauge', name, unit: unitOf(name), help, samples };
}

function counter(name: string, help: string, samples: Sample[]): SimpleFamily {
  return { type: 'counter', name, unit: unitOf(name), help, samples };
}

function unitOf(name: string): string | undefined {
  return /_(seconds|bytes)$/.exec(name)?.[1];
}
