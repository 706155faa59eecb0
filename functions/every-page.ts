// Registers every page of console and portal with style and script, and limits how long pages wait
// for the core.

import { AppError } from '@holdfast/kit/app-error';
import type { SingleFlight } from '@holdfast/kit/concurrency';
import { withTimeout } from '@holdfast/kit/timeout';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { PAGES_VERSION, SCRIPT_PATH, STYLE_PATH } from '../shared/http/page.tsx';
import { alertsPage } from './console/alerts/alerts.tsx';
import { auditPage } from './console/audit.tsx';
import { simulationPage } from './console/simulation.tsx';
import { backupsPage } from './console/backups/backups.tsx';
import { certificateNewPage, certificatePage } from './console/certificates/certificate.tsx';
import { certificatesPage } from './console/certificates/certificates.tsx';
import { databasePage } from './console/database/database.tsx';
import { vacuumPage } from './console/database/vacuum.tsx';
import { devicesPage } from './console/devices.tsx';
import { docsPages } from './console/docs.ts';
import { emergencySheetPage } from './console/backups/emergency-sheet.tsx';
import { healthModulePage } from './console/health/module.tsx';
import { overviewPage } from './console/health/overview.tsx';
import { jobPage, jobsPage } from './console/jobs/jobs.tsx';
import { lockoutsPage } from './console/lockouts.tsx';
import { logsPage } from './console/logs.tsx';
import { mapPage } from './console/map/map.tsx';
import { missionPage } from './console/missions/mission.tsx';
import { missionsPage } from './console/missions/missions.tsx';
import { personChangePages } from './console/people/changes.ts';
import { enrollmentPage, personPasswordPage } from './console/people/credentials.tsx';
import { groupPage, groupsPage } from './console/people/group.tsx';
import { personNewPage } from './console/people/new.tsx';
import { peoplePage } from './console/people/people.tsx';
import { personPage } from './console/people/person.tsx';
import { pluginsPage } from './console/plugins.tsx';
import { profilePage } from './console/profiles/profile.tsx';
import { profilesPage } from './console/profiles/profiles.tsx';
import { retentionPage } from './console/retention/retention.tsx';
import { retentionRunsPage } from './console/retention/runs.tsx';
import { serviceAccountPage } from './console/service-accounts/account.tsx';
import { serviceAccountsPage } from './console/service-accounts/accounts.tsx';
import { settingsPage } from './console/settings.tsx';
import { tokensPage } from './console/tokens.tsx';
import { videoPage } from './console/video.tsx';
import { accountPage } from './pages/account.tsx';
import { morePage } from './pages/more.tsx';
import { addPages, type PageFunction } from './pages/page-routes.ts';
import { addDevicePage } from './portal/devices.tsx';
import { guidePages } from './portal/guides.tsx';
import { homePage } from './portal/home.tsx';

/** Shorter than the 10 s after which the page script reports a lost connection. */
const CORE_TIMEOUT_MS = 6_000;

const READS: Partial<Record<keyof Deps, readonly string[]>> = {
  core: ['certificates', 'certificate', 'clients', 'plugins', 'status', 'enrollmentAttempts'],
  coreContents: ['profiles', 'profileFiles', 'errorLogs', 'videoFeeds', 'packages'],
  coreMissions: ['list', 'find'],
  coreTracks: ['positions'],
  coreRetention: ['policy', 'schedule', 'runs', 'missionArchiving'],
};

/** Shared work that waits for the core, by its key. Other shared work has no time limit. */
const CORE_LISTS = /^(?:clients$|clients:|missions$|certificates:|attempts:)/;

/** The same deps, but reads from the core throw `unavailable` after 6 s. */
export function withCoreTimeout(deps: Deps): Deps {
  return new Proxy(deps, {
    get(target, name) {
      if (name === 'together') return limitTogether(target.together);
      const port: unknown = Reflect.get(target, name);
      const reads = READS[name as keyof Deps];
      return reads === undefined ? port : limitPort(port as object, reads);
    },
  });
}

function limitPort(port: object, reads: readonly string[]): object {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      // Bound to the target: a proxy has no access to the private fields of a class.
      const method = value.bind(target) as Read;
      return reads.includes(String(name)) ? withLimit(method) : method;
    },
  });
}

function limitTogether(together: SingleFlight): SingleFlight {
  const limited = withLimit(together);
  return (key, work) => (CORE_LISTS.test(key) ? limited : together)(key, work);
}

type Read = (...args: never[]) => Promise<unknown>;

function withLimit<R extends Read>(read: R): R {
  return ((...args: never[]) => withTimeout(CORE_TIMEOUT_MS, 'The core', () => read(...args))) as R;
}

const YEAR_SECONDS = 31_536_000;

/**
 * Serves the style and script of all pages, without authentication because the sign-in page uses
 * them.
 */
function pageAssets(app: App, deps: Deps): void {
  for (const [path, name] of [
    [STYLE_PATH, 'pages.css'],
    [SCRIPT_PATH, 'pages.js'],
  ] as const)
    app.get(path, async function sendPageAsset(c) {
      const asset = await deps.assets.read(name);
      if (asset === undefined) throw new AppError('not_found', 'No file at this address.');
      const current = c.req.query('v') === PAGES_VERSION;
      return c.body(asset.body, 200, {
        'Content-Type': asset.contentType,
        'Cache-Control': current ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
        'X-Content-Type-Options': 'nosniff',
      });
    });
}

/** The order has no effect: `addPages` sorts by address. */
export const PAGES: readonly PageFunction[] = [
  accountPage,
  addDevicePage,
  alertsPage,
  auditPage,
  backupsPage,
  simulationPage,
  certificateNewPage,
  certificatePage,
  certificatesPage,
  databasePage,
  devicesPage,
  docsPages,
  emergencySheetPage,
  enrollmentPage,
  groupPage,
  groupsPage,
  guidePages,
  healthModulePage,
  homePage,
  jobPage,
  jobsPage,
  lockoutsPage,
  logsPage,
  mapPage,
  missionPage,
  missionsPage,
  morePage,
  overviewPage,
  peoplePage,
  personChangePages,
  personNewPage,
  personPage,
  personPasswordPage,
  pluginsPage,
  profilePage,
  profilesPage,
  retentionPage,
  retentionRunsPage,
  serviceAccountPage,
  serviceAccountsPage,
  settingsPage,
  tokensPage,
  vacuumPage,
  videoPage,
];

/** Adds all pages. */
export function everyPage(app: App, unlimited: Deps): void {
  const deps = withCoreTimeout(unlimited);
  pageAssets(app, deps);
  addPages(app, deps, PAGES);
}
