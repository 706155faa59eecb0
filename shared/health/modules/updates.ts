// Checks for newer releases of the parts of the stack, and shows an upgrade that failed. Stays OK
// without network or when the check is off.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { counted, formatUtc } from '@holdfast/kit/format';
import { compareVersions } from '@holdfast/kit/release';
import { DAY_MS } from '@holdfast/kit/time';
import type { Release, ReleaseFeed, UpgradeRecord } from '../../host/port.ts';
import type { Finding } from '../evaluate.ts';
import { AFTER_FAILURE_SECONDS, healthModule } from '../module.ts';
import type { Monitored, Part } from '../monitored.ts';

interface PartState {
  name: string;
  version: string | null;
  newest: string | null;
  newer: boolean;
  /** Days since the first release that is newer; null if unknown. */
  behind_days: number | null;
  /** Of the newest release. */
  notes_url: string | null;
  /** Why it could not be compared; null if it was. */
  error: string | null;
}

interface UpdatesData {
  lookup: 'checked' | 'off' | 'no network';
  /** Why there is no network. */
  reason: string | null;
  newer_count: number;
  parts: PartState[];
  /** The last upgrade of Holdfast; null if there was none. */
  upgrade: UpgradeRecord | null;
}

/** A machine may have its network only some minutes after this process has started. */
const WITHOUT_NETWORK_SECONDS = 600;

export const updates = healthModule<UpdatesData>({
  name: 'updates',
  isLocal: true,

  remedy: [
    'Read the release notes and make a backup first.',
    'Upgrade Holdfast with ./scripts/upgrade.sh apply. Without containers this includes PostgreSQL and Node.js. It goes back by itself if the new version does not work.',
    'With containers, update the images of the same versions with docker compose pull --ignore-buildable --ignore-pull-failures, docker compose build --pull and docker compose up -d.',
    'To turn off this check, set UPDATES_URL=off in .env. To use a mirror, set UPDATES_URL and UPDATES_GITHUB_URL.',
  ],

  async read(monitored) {
    const upgrade = (await monitored.upgrades?.last()) ?? null;
    return { ...(await lookUp(monitored)), upgrade };
  },

  findings({ parts, upgrade }) {
    const newer = parts.flatMap((part): Finding[] => {
      if (part.error !== null)
        return [{ kind: 'fact', status: 'note', says: `couldn't check ${part.name} for updates: ${part.error}` }];
      return part.newer ? [newerRelease(part)] : [];
    });
    return [...failedUpgrade(upgrade), ...newer];
  },

  // A failure that somebody has cleared disappears soon.
  againSeconds({ upgrade, lookup }) {
    if (failedUpgrade(upgrade).length > 0) return AFTER_FAILURE_SECONDS;
    return lookup === 'no network' ? WITHOUT_NETWORK_SECONDS : undefined;
  },

  well: ({ lookup, reason, parts }) => {
    if (lookup === 'off') return 'Checking for updates is switched off (UPDATES_URL=off).';
    if (lookup === 'no network') return `Couldn't check for updates: no network (${reason}).`;
    const compared = `Up to date: ${parts.map(({ name, version }) => `${name} ${version}`).join(', ')}.`;
    if (parts.some(({ name }) => name === 'Holdfast')) return compared;
    return `${compared} Holdfast itself isn't compared: UPDATES_REPOSITORY is not set.`;
  },
});

function newerRelease({ name, version, newest, behind_days: days, notes_url: notes }: PartState): Finding {
  const behind = days === null ? '' : `, behind for ${counted(days, 'day')}`;
  return {
    kind: 'fact',
    status: 'note',
    says: `${name} ${newest} is available (installed: ${version}${behind})`,
    remedy: notes === null ? undefined : `Release notes of ${name} ${newest}: ${notes}`,
  };
}

/** Stays until somebody clears it or an upgrade succeeds. */
function failedUpgrade(upgrade: UpgradeRecord | null): Finding[] {
  if (upgrade === null || upgrade.cleared || !['returned', 'stuck'].includes(upgrade.outcome)) return [];
  const { outcome, from, to, at, reason, set_aside: aside } = upgrade;
  const now = outcome === 'returned' ? `${from} runs again` : `${from} did not start either`;
  const data = aside === null ? '' : ` The data of the failed start is in ${aside}.`;
  return [
    {
      kind: 'fact',
      status: outcome === 'returned' ? 'warning' : 'critical',
      says: `the upgrade to ${to} on ${formatUtc(at)} failed and ${now}: ${reason?.replace(/\.$/, '') ?? 'unknown reason'}`,
      remedy: `Read the logs of that time.${data} Then clear this with ./scripts/upgrade.sh check --clear. Upgrades are refused until then.`,
    },
  ];
}

/** Without network nothing is compared, and nothing is wrong. */
async function lookUp({ parts, releases, now }: Monitored): Promise<Omit<UpdatesData, 'upgrade'>> {
  const without = { newer_count: 0, parts: [] };
  if (releases === undefined) return { lookup: 'off', reason: null, ...without };
  const looks = await Promise.all(parts.map((part) => look(part, releases, now())));
  const unreachable = looks.flatMap(({ isUnreachable, state }) => (isUnreachable ? [state.error ?? ''] : []));
  if (unreachable.length > 0 && looks.every(({ isUnreachable, state }) => isUnreachable || state.version === null))
    return { lookup: 'no network', reason: unreachable[0] ?? null, ...without };
  const states = looks.map(({ state }) => state);
  return { lookup: 'checked', reason: null, newer_count: states.filter(({ newer }) => newer).length, parts: states };
}

interface Look {
  state: PartState;
  /** The list of releases could not be reached. */
  isUnreachable: boolean;
}

/** Never rejects: every error is in the state. */
async function look(part: Part, feed: ReleaseFeed, now: Date): Promise<Look> {
  const { name, version: readVersion, mayBeUnlisted = false } = part;
  const nothing = { newest: null, newer: false, behind_days: null, notes_url: null, error: null };
  const state: PartState = { name, version: null, ...nothing };
  try {
    state.version = await readVersion();
    const compared = compare(part, state.version, await feed.releases(part.source), now);
    if (compared === undefined && !mayBeUnlisted) state.error = `no release information about ${state.version}`;
    return { state: { ...state, ...compared }, isUnreachable: false };
  } catch (error) {
    const isUnreachable = error instanceof AppError && error.code === 'unavailable' && state.version !== null;
    return { state: { ...state, error: messageOf(error) }, isUnreachable };
  }
}

type Compared = Pick<PartState, 'newest' | 'newer' | 'behind_days' | 'notes_url'>;

/** Undefined if no release is comparable. */
function compare(
  { cycleParts, notes }: Part,
  version: string,
  releases: readonly Release[],
  now: Date,
): Compared | undefined {
  const cycle = cycleOf(version, cycleParts);
  const known = releases.flatMap((release) => {
    const order = compareVersions(numbersOf(release.version), numbersOf(version));
    return order === undefined || cycleOf(release.version, cycleParts) !== cycle ? [] : [{ ...release, order }];
  });
  const [first] = known;
  if (first === undefined) return undefined;
  const newest = known.reduce((best, each) =>
    (compareVersions(numbersOf(each.version), numbersOf(best.version)) ?? 0) > 0 ? each : best,
  );
  if (newest.order <= 0) return { newest: newest.version, newer: false, behind_days: 0, notes_url: null };
  const times = known.flatMap(({ order, releasedAt }) => (order > 0 && releasedAt ? [releasedAt.getTime()] : []));
  return {
    newest: newest.version,
    newer: true,
    behind_days: times.length === 0 ? null : Math.max(0, Math.floor((now.getTime() - Math.min(...times)) / DAY_MS)),
    notes_url: newest.notes ?? notes?.(newest.version) ?? null,
  };
}

/** `5.7-RELEASE-8` of a TAK Server is no pre-release of 5.7. */
function numbersOf(version: string): string {
  return version.replace(/-RELEASE-/, '.');
}

function cycleOf(version: string, parts: number): string {
  return version.replace(/^v/, '').split('.').slice(0, parts).join('.');
}
