// The table of the jobs. To add one: a file beside this one that exports run(deps, now), and an entry here. The crons
// are held equal to wrangler.toml by a test; where the host ticks each second, `intervalSeconds` decides.

import type { Deps } from '../shared/http/deps.ts';
import type { Job } from '../shared/jobs/port.ts';
import { run as countRetentionDays } from './count-retention-days.ts';
import { run as disconnectUnlisted, isWanted as hasLoggedConnections } from './disconnect-unlisted.ts';
import { run as dispatchAlerts } from './dispatch-alerts.ts';
import { run as expireUsers } from './expire-users.ts';
import { run as findRevocations } from './find-revocations.ts';
import { run as finishIntents } from './finish-intents.ts';
import { run as heartbeat } from './heartbeat.ts';
import { run as keepRetentionHistory } from './keep-retention-history.ts';
import { run as keepServiceCertificates } from './keep-service-certificates.ts';
import { run as placeUngrouped } from './place-ungrouped.ts';
import { run as pollHealth } from './poll-health.ts';
import {
  isWanted as hasRevocationsToProve,
  EVERY_SECONDS as PROVE_EVERY_SECONDS,
  run as proveRevocations,
} from './prove-revocations.ts';
import { run as pruneAlerts } from './prune-alerts.ts';
import { run as pruneJobRuns } from './prune-job-runs.ts';
import { run as pruneSignIns } from './prune-sign-ins.ts';
import {
  EVERY_SECONDS as CARRY_ON_EVERY_SECONDS,
  isWanted as hasRetentionToCarryOn,
  run as runRetention,
} from './run-retention.ts';
import {
  isWanted as hasVacuumToCarryOn,
  run as runVacuum,
  EVERY_SECONDS as VACUUM_EVERY_SECONDS,
} from './run-vacuum.ts';
import { run as sampleGrowth } from './sample-growth.ts';
import { run as sampleHealth } from './sample-health.ts';
import { isWanted as hasRetentionVariables, run as syncRetention } from './sync-retention.ts';

const MINUTE = 60;
const HOUR = 3600;

export const JOBS: readonly Job<Deps>[] = [
  {
    name: 'poll-health',
    cron: '* * * * *',
    claim: 'none',
    intervalSeconds: () => 1,
    run: pollHealth,
  },
  {
    name: 'dispatch-alerts',
    cron: '* * * * *',
    claim: 'none',
    intervalSeconds: () => 1,
    run: dispatchAlerts,
  },
  {
    name: 'heartbeat',
    cron: '* * * * *',
    claim: 'none',
    intervalSeconds: () => MINUTE,
    run: heartbeat,
  },
  {
    name: 'expire-users',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: ({ thresholds }) => thresholds.user_expiry_check_interval,
    limitSeconds: 50,
    run: expireUsers,
  },
  {
    name: 'finish-intents',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => MINUTE,
    limitSeconds: 50,
    run: finishIntents,
  },
  {
    name: 'prove-revocations',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => PROVE_EVERY_SECONDS,
    limitSeconds: 120,
    isWanted: hasRevocationsToProve,
    run: proveRevocations,
  },
  {
    name: 'find-revocations',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => MINUTE,
    limitSeconds: 50,
    run: findRevocations,
  },
  {
    name: 'run-retention',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => CARRY_ON_EVERY_SECONDS,
    limitSeconds: 50,
    isWanted: hasRetentionToCarryOn,
    run: runRetention,
  },
  {
    name: 'run-vacuum',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => VACUUM_EVERY_SECONDS,
    limitSeconds: 50,
    isWanted: hasVacuumToCarryOn,
    run: runVacuum,
  },
  {
    name: 'keep-retention-history',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => MINUTE,
    limitSeconds: 50,
    run: keepRetentionHistory,
  },
  {
    name: 'keep-service-certificates',
    cron: '7 * * * *',
    claim: 'row',
    intervalSeconds: () => 5 * MINUTE,
    limitSeconds: 120,
    run: keepServiceCertificates,
  },
  {
    name: 'place-ungrouped',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => 5 * MINUTE,
    limitSeconds: 120,
    run: placeUngrouped,
  },
  {
    name: 'disconnect-unlisted',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => MINUTE,
    limitSeconds: 50,
    isWanted: hasLoggedConnections,
    run: disconnectUnlisted,
  },
  {
    name: 'sync-retention',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => MINUTE,
    limitSeconds: 50,
    isWanted: hasRetentionVariables,
    run: syncRetention,
  },
  {
    name: 'sample-growth',
    cron: '* * * * *',
    claim: 'row',
    intervalSeconds: () => MINUTE,
    limitSeconds: 50,
    run: sampleGrowth,
  },
  {
    name: 'sample-health',
    cron: '* * * * *',
    claim: 'none',
    intervalSeconds: () => MINUTE,
    run: sampleHealth,
  },
  {
    name: 'prune-alerts',
    cron: '7 * * * *',
    claim: 'row',
    intervalSeconds: () => HOUR,
    limitSeconds: 60,
    run: pruneAlerts,
  },
  {
    name: 'prune-job-runs',
    cron: '7 * * * *',
    claim: 'row',
    intervalSeconds: () => HOUR,
    limitSeconds: 60,
    run: pruneJobRuns,
  },
  {
    name: 'prune-sign-ins',
    cron: '7 * * * *',
    claim: 'row',
    intervalSeconds: () => HOUR,
    limitSeconds: 60,
    run: pruneSignIns,
  },
  {
    name: 'count-retention-days',
    cron: '7 * * * *',
    claim: 'row',
    intervalSeconds: () => HOUR,
    limitSeconds: 10 * MINUTE,
    run: countRetentionDays,
  },
];
