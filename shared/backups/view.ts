// Shows the state of backups with the settings behind it, and how to restore one. Never a secret.

import { AppError } from '@holdfast/kit/app-error';
import type { Schedules } from '@holdfast/kit/cron';
import type { Settings } from '../settings/table.ts';
import type { Backup, Backups, BackupState } from './port.ts';
import { isProven } from './rules.ts';

export interface BackupsViewDeps {
  backups: Pick<Backups, 'state'>;
  settings: Settings;
  schedules: Pick<Schedules, 'next'>;
  timeZone: string;
  now: () => Date;
}

export interface BackupsView extends Omit<BackupState, 'backups'> {
  /** False while BACKUP_TARGET is unset. */
  wanted: boolean;
  cron: string;
  time_zone: string;
  next_at: string | null;
  history: boolean;
  keep_days: number;
  keep_count: number;
  backups: (Backup & { proven: boolean })[];
}

/** While no backups are wanted, the service isn't asked. Rejects if it doesn't answer. */
export async function backupsView(deps: BackupsViewDeps): Promise<BackupsView> {
  const { settings, schedules, timeZone, now } = deps;
  const { BACKUP_TARGET: target, BACKUP_CRON: cron } = settings;
  const wanted = target !== undefined;
  const state = wanted ? await deps.backups.state() : nothing(settings);
  const next = wanted ? schedules.next(cron, 'quartz', timeZone, now(), 1)[0] : undefined;
  return {
    ...state,
    wanted,
    cron,
    time_zone: timeZone,
    next_at: next?.toISOString() ?? null,
    history: settings.BACKUP_HISTORY,
    keep_days: settings.BACKUP_KEEP_DAYS,
    keep_count: settings.BACKUP_KEEP_COUNT,
    backups: state.backups.map((backup) => ({ ...backup, proven: isProven(backup) })),
  };
}

function nothing({ BACKUP_PROOF: proof }: Settings): BackupState {
  return { target: null, encryption: null, proof, running: null, last_failure: null, backups: [] };
}

/** Where the key of the archives is kept, by the name of its variable. */
export function keyOf(settings: Pick<Settings, 'BACKUP_RECIPIENT'>): {
  variable: string;
  where: string;
  option: string;
} {
  if (settings.BACKUP_RECIPIENT !== undefined)
    return {
      variable: 'BACKUP_RECIPIENT',
      where:
        'The private key (AGE-SECRET-KEY-...) that belongs to BACKUP_RECIPIENT. It was never on the server. The person who made the pair keeps it.',
      option: '--identity-file FILE',
    };
  return {
    variable: 'BACKUP_PASSPHRASE',
    where:
      'The passphrase in BACKUP_PASSPHRASE: in .env on the server, and the copy that you keep elsewhere. Without it no archive can be opened.',
    option: '--passphrase-file FILE',
  };
}

/**
 * The command on a machine that has nothing but the archive, the key and the archive of the TAK
 * Server release, if it uses one.
 */
export function restoreCommand(
  archive: string,
  option: string,
  isEmbedded: boolean,
  release: Settings['CORE_RELEASE'],
): string {
  if (isEmbedded) return `./scripts/start.sh --embedded --data NEW --restore ${archive} ${option}`;
  const ofRelease = release === undefined ? '' : `takserver-docker-${release}.zip `;
  return `./scripts/setup.sh ${ofRelease}--restore ${archive} ${option}`;
}

export interface EmergencySheet {
  printed_at: string;
  /** As alerts call the stack. */
  name: string;
  console: string;
  portal: string;
  release: string;
  kind: 'embedded' | 'containers';
  /** The directory or address of the archives; null while no backups are made. */
  place: string | null;
  key: { variable: string; where: string };
  restore: string;
  /** SHA-256, in hex; null if it can't be read now. */
  ca_fingerprint: string | null;
  last_proven: { name: string; created_at: string; level: string } | null;
  /** What this sheet couldn't find out. */
  problems: string[];
}

export interface SheetDeps extends BackupsViewDeps {
  coreAuthority: { certificate(): Promise<{ fingerprint: string }> };
  place: { name: string };
  addresses: { console: string; portal: string };
  release: string;
  monitored: { wanted: { container: unknown } };
}

/** Needs neither the service nor the core: what they don't say is a problem on the sheet. */
export async function emergencySheet(deps: SheetDeps): Promise<EmergencySheet> {
  const { settings, place, addresses, release, now } = deps;
  const problems: string[] = [];
  const note = (error: unknown): undefined => {
    if (!(error instanceof AppError)) throw error;
    problems.push(error.message);
    return undefined;
  };
  const view = await backupsView(deps).catch(note);
  const authority = await deps.coreAuthority.certificate().catch(note);
  const proven = view?.backups.find((backup) => backup.proven);
  const isEmbedded = deps.monitored.wanted.container === undefined;
  const { option, ...key } = keyOf(settings);
  return {
    printed_at: now().toISOString(),
    name: place.name,
    ...addresses,
    release,
    kind: isEmbedded ? 'embedded' : 'containers',
    place: settings.BACKUP_TARGET ?? null,
    key,
    restore: restoreCommand(proven?.name ?? 'FILE', option, isEmbedded, settings.CORE_RELEASE),
    ca_fingerprint: formatFingerprint(authority?.fingerprint ?? view?.backups[0]?.ca_fingerprint),
    last_proven:
      proven === undefined
        ? null
        : { name: proven.name, created_at: proven.created_at, level: proven.proof?.level ?? 'exists' },
    problems,
  };
}

/** As `openssl x509 -fingerprint` shows it. */
function formatFingerprint(text: string | undefined): string | null {
  const hex = text?.replaceAll(/[^\da-f]/gi, '').toUpperCase();
  return hex?.match(/../g)?.join(':') ?? null;
}
