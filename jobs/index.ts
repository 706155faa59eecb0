// Lists the jobs. To add one, add a file beside this one that exports run(deps, now), and an entry
// here. A test checks that wrangler.toml has the minutes of these crons.

import type { Deps } from '../shared/http/deps.ts';
import type { Job } from '../shared/jobs/port.ts';
import { isWanted as hasBackupToCarryOn, run as backUp } from './back-up.ts';
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
import { isWanted as hasRevocationsToProve, run as proveRevocations } from './prove-revocations.ts';
import { run as pruneAlerts } from './prune-alerts.ts';
import { run as pruneJobRuns } from './prune-job-runs.ts';
import { run as pruneSignIns } from './prune-sign-ins.ts';
import { isWanted as hasRetentionToCarryOn, run as runRetention } from './run-retention.ts';
import { isWanted as hasSimulationToCarryOn, run as runSimulation } from './run-simulation.ts';
import { isWanted as hasVacuumToCarryOn, run as runVacuum } from './run-vacuum.ts';
import { run as sampleGrowth } from './sample-growth.ts';
import { run as sampleHealth } from './sample-health.ts';
import { isWanted as hasRetentionVariables, run as syncRetention } from './sync-retention.ts';

const EACH_SECOND = '* * * * * *';
const EACH_MINUTE = '* * * * *';
const EACH_5_MINUTES = '*/5 * * * *';
const EACH_HOUR = '7 * * * *';

export const JOBS: readonly Job<Deps>[] = [
  {
    name: 'poll-health',
    cron: EACH_SECOND,
    claim: 'none',
    run: pollHealth,
  },
  {
    name: 'dispatch-alerts',
    cron: EACH_SECOND,
    claim: 'none',
    run: dispatchAlerts,
  },
  {
    name: 'heartbeat',
    cron: EACH_MINUTE,
    claim: 'none',
    run: heartbeat,
  },
  {
    name: 'expire-users',
    cron: EACH_SECOND,
    claim: 'row',
    everySeconds: ({ user_expiry_check_interval }) => user_expiry_check_interval,
    limitSeconds: 50,
    run: expireUsers,
  },
  {
    name: 'finish-intents',
    cron: EACH_MINUTE,
    claim: 'row',
    limitSeconds: 50,
    run: finishIntents,
  },
  {
    name: 'prove-revocations',
    cron: '*/5 * * * * *',
    claim: 'row',
    limitSeconds: 120,
    isWanted: hasRevocationsToProve,
    run: proveRevocations,
  },
  {
    name: 'find-revocations',
    cron: EACH_MINUTE,
    claim: 'row',
    limitSeconds: 50,
    run: findRevocations,
  },
  {
    name: 'run-retention',
    cron: '*/2 * * * * *',
    claim: 'row',
    limitSeconds: 50,
    isWanted: hasRetentionToCarryOn,
    run: runRetention,
  },
  {
    name: 'run-vacuum',
    cron: '*/2 * * * * *',
    claim: 'row',
    limitSeconds: 50,
    isWanted: hasVacuumToCarryOn,
    run: runVacuum,
  },
  {
    name: 'run-simulation',
    cron: '*/2 * * * * *',
    claim: 'row',
    limitSeconds: 50,
    isWanted: hasSimulationToCarryOn,
    run: runSimulation,
  },
  {
    name: 'back-up',
    cron: '*/5 * * * * *',
    claim: 'row',
    limitSeconds: 50,
    isWanted: hasBackupToCarryOn,
    run: backUp,
  },
  {
    name: 'keep-retention-history',
    cron: EACH_MINUTE,
    claim: 'row',
    limitSeconds: 50,
    run: keepRetentionHistory,
  },
  {
    name: 'keep-service-certificates',
    cron: EACH_5_MINUTES,
    claim: 'row',
    limitSeconds: 120,
    run: keepServiceCertificates,
  },
  {
    name: 'place-ungrouped',
    cron: EACH_5_MINUTES,
    claim: 'row',
    limitSeconds: 120,
    run: placeUngrouped,
  },
  {
    name: 'disconnect-unlisted',
    cron: EACH_MINUTE,
    claim: 'row',
    limitSeconds: 50,
    isWanted: hasLoggedConnections,
    run: disconnectUnlisted,
  },
  {
    name: 'sync-retention',
    cron: EACH_MINUTE,
    claim: 'row',
    limitSeconds: 50,
    isWanted: hasRetentionVariables,
    run: syncRetention,
  },
  {
    name: 'sample-growth',
    cron: EACH_MINUTE,
    claim: 'row',
    limitSeconds: 50,
    run: sampleGrowth,
  },
  {
    name: 'sample-health',
    cron: EACH_MINUTE,
    claim: 'none',
    run: sampleHealth,
  },
  {
    name: 'prune-alerts',
    cron: EACH_HOUR,
    claim: 'row',
    limitSeconds: 60,
    run: pruneAlerts,
  },
  {
    name: 'prune-job-runs',
    cron: EACH_HOUR,
    claim: 'row',
    limitSeconds: 60,
    run: pruneJobRuns,
  },
  {
    name: 'prune-sign-ins',
    cron: EACH_HOUR,
    claim: 'row',
    limitSeconds: 60,
    run: pruneSignIns,
  },
  {
    name: 'count-retention-days',
    cron: EACH_HOUR,
    claim: 'row',
    limitSeconds: 600,
    run: countRetentionDays,
  },
];
