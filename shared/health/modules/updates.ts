// Checks for newer releases of PostgreSQL and Node.js, and shows an upgrade that failed. Stays OK
// without network or when the check is off.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { formatUtc } from '@holdfast/kit/format';
import { compareVersions } from '@holdfast/kit/release';
import type { ReleaseFeed, UpgradeRecord } from '../../host/port.ts';
import type { Finding } from '../evaluate.ts';
import { healthModule } from '../module.ts';
import type { Part } from '../monitored.ts';

interface PartState {
  name: string;
  version: string | null;
  newest: string | null;
  newer: boolean;
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

const AGAIN_SECONDS = 60;

export const updates = healthModule<UpdatesData>({
  name: 'updates',

  remedy: [
    'Read the release notes and make a backup first.',
    'Upgrade Holdfast with ./scripts/upgrade.sh apply. Without containers this includes PostgreSQL and Node.js. It goes back by itself if the new version does not work.',
    'With containers, update the images of the same versions with docker compose pull --ignore-buildable --ignore-pull-failures, docker compose build --pull and docker compose up -d.',
    'To turn off this check, set UPDATES_URL=off in .env.',
  ],

  async read({ releases, parts, upgrades }) {
    const upgrade = (await upgrades?.last()) ?? null;
    return { ...(await lookUp(parts, releases)), upgrade };
  },

  findings({ parts, upgrade }) {
    const newer = parts.flatMap(({ name, version, newest, newer, error }): Finding[] => {
      if (error !== null)
        return [{ kind: 'fact', status: 'note', says: `couldn't check ${name} for updates: ${error}` }];
      return newer
        ? [{ kind: 'fact', status: 'note', says: `${name} ${newest} is available (installed: ${version})` }]
        : [];
    });
    return [...failedUpgrade(upgrade), ...newer];
  },

  // A failure that somebody has cleared disappears soon.
  againSeconds: ({ upgrade }) => (failedUpgrade(upgrade).length > 0 ? AGAIN_SECONDS : undefined),

  well: ({ lookup, reason, parts }) => {
    if (lookup === 'off') return 'Checking PostgreSQL and Node.js for updates is switched off (UPDATES_URL=off).';
    if (lookup === 'no network') return `Couldn't check PostgreSQL and Node.js for updates: no network (${reason}).`;
    return `Up to date: ${parts.map(({ name, version }) => `${name} ${version}`).join(', ')}.`;
  },
});

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

async function lookUp(
  parts: readonly Part[],
  releases: ReleaseFeed | undefined,
): Promise<Omit<UpdatesData, 'upgrade'>> {
  const without = { newer_count: 0, parts: [] };
  if (releases === undefined) return { lookup: 'off', reason: null, ...without };
  try {
    const states = await Promise.all(parts.map((part) => look(part, releases)));
    return { lookup: 'checked', reason: null, newer_count: states.filter(({ newer }) => newer).length, parts: states };
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable')
      return { lookup: 'no network', reason: error.message, ...without };
    throw error;
  }
}

/** Rejects only if the feed is unreachable; every other error is in the state. */
async function look({ name, product, version, cycleParts }: Part, releases: ReleaseFeed): Promise<PartState> {
  const state: PartState = { name, version: null, newest: null, newer: false, error: null };
  try {
    state.version = await version();
    const cycle = state.version.replace(/^v/, '').split('.').slice(0, cycleParts).join('.');
    state.newest = (await releases.newest(product, cycle)) ?? null;
    const order = state.newest === null ? undefined : compareVersions(state.newest, state.version);
    if (order === undefined) return { ...state, error: `no release information about ${state.version}` };
    return { ...state, newer: order > 0 };
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable' && state.version !== null) throw error;
    return { ...state, error: messageOf(error) };
  }
}
