// Checks that backups are made, proven, of a plausible size, and have room. Without a proven backup
// the module is never ok.

import { messageOf } from '@holdfast/kit/app-error';
import { formatBytes, rounded } from '@holdfast/kit/format';
import { capitalised } from '@holdfast/kit/text';
import { SECOND_MS } from '@holdfast/kit/time';
import type { Backup, BackupState } from '../../backups/port.ts';
import { allowedMs, formatLevel, isProven, lastProven } from '../../backups/rules.ts';
import type { ModuleThresholds } from '../../settings/status.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { AFTER_FAILURE_SECONDS, hasJustStarted, healthModule } from '../module.ts';

const OFF = {
  wanted: false,
  starting: false,
  error: null,
  place: null,
  target_error: null,
  free_bytes: null,
  fits: null,
  proof: null,
  limit_reason: null,
  backups_count: 0,
  last_at: null,
  last_bytes: null,
  last_level: null,
  last_proof_error: null,
  size_change_pct: null,
  proven_at: null,
  proven_level: null,
  proven_age_seconds: null,
  allowed_seconds: null,
  last_failure: null,
};

type BackupData = Record<'wanted' | 'starting', boolean> & {
  /** Why the service can't be asked. */
  error: string | null;
  place: string | null;
  target_error: string | null;
  free_bytes: number | null;
  /** How many backups of the last size fit. */
  fits: number | null;
  proof: BackupState['proof'] | null;
  limit_reason: string | null;
  backups_count: number;
  last_at: string | null;
  last_bytes: number | null;
  last_level: string | null;
  last_proof_error: string | null;
  /** Of the last backup against the median of those before it. */
  size_change_pct: number | null;
  proven_at: string | null;
  proven_level: string | null;
  /** With BACKUP_PROOF=off: of the last backup. */
  proven_age_seconds: number | null;
  /** How old it may be, by the schedule. */
  allowed_seconds: number | null;
  last_failure: { kind: string; at: string; error: string } | null;
};

/** A backup this much smaller than the ones before may have missed something. */
const SHRUNK_PCT = -50;
const COMPARED = 7;
const RUN_NOW = 'Start one on the page Backups (Run now), and follow it there.';
const LOG = 'Read the log of the backup service: docker compose logs --tail 50 backup, or DIR/logs/backup.log.';

export const backup = healthModule<BackupData>({
  name: 'backup',

  remedy: [
    'The page Backups shows every backup, how far it is proven, and why the last run failed.',
    `${LOG} It names the file or table that failed.`,
    'Where backups go, how they are encrypted and when they run: the settings BACKUP_* in .env. A restart applies them.',
  ],

  async read({ wanted: { backups: wanted }, backups, schedules, timeZone, startedAt, now }) {
    if (wanted === undefined) return OFF;
    const starting = hasJustStarted(startedAt, now());
    let state: BackupState;
    try {
      state = await backups.state();
    } catch (error) {
      return { ...OFF, wanted: true, starting, error: messageOf(error) };
    }
    const { target, proof, backups: list } = state;
    const [last] = list;
    const proven = proof === 'off' ? last : lastProven(list);
    const ageMs = proven === undefined ? null : now().getTime() - Date.parse(proven.created_at);
    return {
      ...OFF,
      wanted: true,
      starting,
      place: target?.place ?? null,
      target_error: target === null ? 'the service has no target' : target.error,
      free_bytes: target?.free_bytes ?? null,
      fits: fitsOf(target?.free_bytes ?? null, list),
      proof,
      limit_reason: last?.proof?.limit?.reason ?? null,
      backups_count: list.length,
      last_at: last?.created_at ?? null,
      last_bytes: last?.bytes ?? null,
      last_level: last === undefined ? null : formatLevel(last),
      last_proof_error:
        last === undefined || last.proof === null || isProven(last) ? null : (last.proof.error ?? 'no reason'),
      size_change_pct: sizeChange(list),
      proven_at: proven?.created_at ?? null,
      proven_level: proven === undefined ? null : formatLevel(proven),
      proven_age_seconds: ageMs === null ? null : Math.round(ageMs / SECOND_MS),
      allowed_seconds: Math.round(allowedMs({ schedules, timeZone }, wanted.cron, proof, now()) / SECOND_MS),
      last_failure: failureOf(state),
    };
  },

  findings(data, thresholds) {
    if (!data.wanted) return [off()];
    if (data.error !== null) return [unreachable(data.error, data.starting)];
    return [...targetFindings(data, thresholds), ...proofFindings(data, thresholds), ...runFindings(data)];
  },

  well({
    proven_level: level,
    proven_age_seconds: seconds,
    last_bytes: bytes,
    limit_reason: reason,
    backups_count: count,
  }) {
    const limit = reason === null ? '' : ` It goes no further here: ${reason}`;
    return `The last backup is ${formatAge(seconds ?? 0)} old, ${formatBytes(bytes ?? 0)}, and proven to the level "${level}". ${count} kept.${limit}`;
  },

  againSeconds: ({ error }) => (error === null ? undefined : AFTER_FAILURE_SECONDS),

  trend: { name: 'last backup', unit: 'bytes', figureOf: ({ last_bytes: bytes }) => bytes },
});

function off(): Finding {
  return {
    kind: 'fact',
    status: 'note',
    says: 'No backups are made: BACKUP_TARGET is not set',
    remedy:
      'Set BACKUP_TARGET to a directory on another disk or s3://BUCKET/PREFIX, and BACKUP_PASSPHRASE, in .env; then restart. Keep a copy of the passphrase elsewhere.',
  };
}

function unreachable(error: string, starting: boolean): Finding {
  return { kind: 'fact', status: starting ? 'note' : 'warning', says: withoutRemedy(error), remedy: LOG };
}

function targetFindings(
  { target_error: error, place, fits, free_bytes: free }: BackupData,
  thresholds: ModuleThresholds,
): Finding[] {
  if (error !== null)
    return [
      {
        kind: 'fact',
        status: 'critical',
        says: `the target ${place ?? ''} can't be used: ${withoutRemedy(error)}`,
        remedy: remedyIn(error) ?? 'Mount or repair the place of BACKUP_TARGET; no backup can be made meanwhile.',
      },
    ];
  if (fits === null || free === null) return [];
  return [
    {
      kind: 'figure',
      subject: `room in ${place}`,
      value: fits,
      limits: limitsOf(thresholds, 'room_'),
      says: `${formatBytes(free)} free, for ${Math.floor(fits)} more backups of the last size`,
      remedy:
        'Free some space there, or keep fewer backups: BACKUP_KEEP_DAYS and BACKUP_KEEP_COUNT. Permanent ones are never deleted.',
      lowerIsWorse: true,
    },
  ];
}

function proofFindings(data: BackupData, thresholds: ModuleThresholds): Finding[] {
  const { proof, backups_count: count, proven_at: at, proven_age_seconds: age, allowed_seconds: allowed } = data;
  if (count === 0) return [{ kind: 'fact', status: 'warning', says: 'there is no backup yet', remedy: RUN_NOW }];
  if (at === null || age === null || allowed === null)
    return [
      {
        kind: 'fact',
        status: 'warning',
        says: 'no backup was ever proven, so it is unknown if one can be restored',
        remedy: 'Prove one on the page Backups (Prove now), and set BACKUP_PROOF=always.',
      },
    ];
  const subject = proof === 'off' ? 'last backup' : 'last proven backup';
  const lateSeconds = Math.max(0, age - allowed);
  const late: Finding = {
    kind: 'figure',
    subject,
    value: lateSeconds / 3600,
    limits: limitsOf(thresholds),
    says: `${formatAge(age)} old, ${formatAge(lateSeconds)} late`,
    format: (hours) => `${hours} h late`,
    remedy: RUN_NOW,
  };
  return proof === 'off' ? [late, unproven()] : [late];
}

function unproven(): Finding {
  return {
    kind: 'fact',
    status: 'note',
    says: 'backups are made but not proven (BACKUP_PROOF=off), so it is unknown if they can be restored',
    remedy: 'Set BACKUP_PROOF=always or weekly in .env, then restart.',
  };
}

function runFindings({
  last_failure: failure,
  last_proof_error: error,
  size_change_pct: change,
  last_bytes: bytes,
}: BackupData): Finding[] {
  const findings: Finding[] = [];
  if (failure !== null) {
    const what = failure.kind === 'proof' ? 'proof' : 'backup';
    const says = `the last ${what} failed: ${withoutRemedy(failure.error)}`;
    findings.push({
      kind: 'fact',
      status: 'warning',
      says,
      remedy: remedyIn(failure.error) ?? `Fix that, then run it again. ${LOG}`,
    });
  }
  // A failure of the proof says the same.
  if (error !== null && failure?.kind !== 'proof')
    findings.push({
      kind: 'fact',
      status: 'warning',
      says: `the proof of the last backup failed: ${withoutRemedy(error)}`,
      remedy: `Prove it again on the page Backups. If it fails again, run a new backup. ${LOG}`,
    });
  if (change !== null && change <= SHRUNK_PCT)
    findings.push({
      kind: 'fact',
      status: 'warning',
      says: `the last backup has only ${formatBytes(bytes ?? 0)}, ${rounded(-change, 0)} % less than the ones before`,
      remedy:
        'If much was deleted on purpose, the next backups make this pass. Otherwise mark an earlier backup as permanent (page Backups) and find what is missing.',
    });
  return findings;
}

function fitsOf(free: number | null, [last]: readonly Backup[]): number | null {
  return free === null || last === undefined || last.bytes === 0 ? null : rounded(free / last.bytes, 1);
}

/** Only backups with the same contents are compared. */
function sizeChange([last, ...others]: readonly Backup[]): number | null {
  const before = others.filter(({ history }) => history === last?.history).slice(0, COMPARED);
  const sizes = before.map(({ bytes }) => bytes).toSorted((a, b) => a - b);
  const median = sizes[Math.floor(sizes.length / 2)];
  if (last === undefined || median === undefined || median === 0) return null;
  return rounded(((last.bytes - median) / median) * 100, 1);
}

function failureOf({ last_failure: failure }: BackupState): BackupData['last_failure'] {
  return failure === null ? null : { kind: failure.kind, at: failure.at, error: failure.error };
}

/** The service ends its errors with a remedy. */
function withoutRemedy(error: string): string {
  return error.replace(/\s*Remedy:.*$/s, '').replace(/\.$/, '');
}

function remedyIn(error: string): string | undefined {
  const [, remedy] = /Remedy: (.{10,290})$/s.exec(error) ?? [];
  return remedy === undefined ? undefined : capitalised(remedy);
}

function formatAge(seconds: number): string {
  const hours = seconds / 3600;
  if (hours < 1) return `${Math.round(seconds / 60)} min`;
  return hours < 48 ? `${rounded(hours, hours < 10 ? 1 : 0)} h` : `${rounded(hours / 24, 1)} days`;
}
