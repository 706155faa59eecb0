// Checks for newer releases of PostgreSQL and Node.js. Stays OK without network or when the check
// is off.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { compareVersions } from '@holdfast/kit/release';
import type { ReleaseFeed } from '../../host/port.ts';
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
}

export const updates = healthModule<UpdatesData>({
  name: 'updates',

  remedy: [
    'Read the release notes and make a backup first (embedded: stop the stack and copy DIR).',
    'Update Holdfast and start again: git pull, then ./scripts/start.sh with your options. It includes PostgreSQL and Node.js of the embedded stack.',
    'With containers, update the images of the same versions with docker compose pull --ignore-buildable --ignore-pull-failures, docker compose build --pull and docker compose up -d.',
    'To turn off this check, set UPDATES_URL=off in .env.',
  ],

  async read({ releases, parts }) {
    if (releases === undefined) return { lookup: 'off', reason: null, newer_count: 0, parts: [] };
    try {
      const states = await Promise.all(parts.map((part) => look(part, releases)));
      return {
        lookup: 'checked',
        reason: null,
        newer_count: states.filter(({ newer }) => newer).length,
        parts: states,
      };
    } catch (error) {
      if (error instanceof AppError && error.code === 'unavailable')
        return { lookup: 'no network', reason: error.message, newer_count: 0, parts: [] };
      throw error;
    }
  },

  findings({ parts }) {
    return parts.flatMap(({ name, version, newest, newer, error }): Finding[] => {
      if (error !== null)
        return [{ kind: 'fact', status: 'note', says: `couldn't check ${name} for updates: ${error}` }];
      return newer
        ? [{ kind: 'fact', status: 'note', says: `${name} ${newest} is available (installed: ${version})` }]
        : [];
    });
  },

  well: ({ lookup, reason, parts }) => {
    if (lookup === 'off') return 'Checking PostgreSQL and Node.js for updates is switched off (UPDATES_URL=off).';
    if (lookup === 'no network') return `Couldn't check PostgreSQL and Node.js for updates: no network (${reason}).`;
    return `Up to date: ${parts.map(({ name, version }) => `${name} ${version}`).join(', ')}.`;
  },
});

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
