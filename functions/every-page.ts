// Every page of console and portal: one line each; style and script; and no page waits long for the core.

import { AppError } from '@holdfast/kit/app-error';
import type { SingleFlight } from '@holdfast/kit/concurrency';
import { withTimeout } from '@holdfast/kit/timeout';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { PAGES_VERSION, SCRIPT_PATH, STYLE_PATH } from '../shared/http/page.tsx';
import { alertsPage } from './console/alerts/alerts.tsx';
import { auditPage } from './console/audit.tsx';
import { certificateNewPage, certificatePage } from './console/certificates/certificate.tsx';
import { certificatesPage } from './console/certificates/certificates.tsx';
import { databasePage } from './console/database/database.tsx';
import { vacuumPage } from './console/database/vacuum.tsx';
import { devicesPage } from './console/devices.tsx';
import { healthModulePage } from './console/health/module.tsx';
import { overviewPage } from './console/health/overview.tsx';
import { jobPage, jobsPage } from './console/jobs/jobs.tsx';
import { lockoutsPage } from './console/lockouts.tsx';
import { logsPage } from './console/logs.tsx';
import { personChangePages } from './console/people/changes.ts';
import { enrollmentPage, personPasswordPage } from './console/people/credentials.tsx';
import { groupPage, groupsPage } from './console/people/group.tsx';
import { personNewPage } from './console/people/new.tsx';
import { peoplePage } from './console/people/people.tsx';
import { personPage } from './console/people/person.tsx';
import { pluginsPage } from './console/plugins.tsx';
import { retentionPage } from './console/retention/retention.tsx';
import { retentionRunsPage } from './console/retention/runs.tsx';
import { serviceAccountPage } from './console/service-accounts/account.tsx';
import { serviceAccountsPage } from './console/service-accounts/accounts.tsx';
import { settingsPage } from './console/settings.tsx';
import { tokensPage } from './console/tokens.tsx';
import { accountPage } from './pages/account.tsx';
import { morePage } from './pages/more.tsx';
import { addPages, type PageFunction } from './pages/page-routes.ts';
import { addDevicePage } from './portal/devices.tsx';
import { guidePages } from './portal/guides.tsx';
import { homePage } from './portal/home.tsx';

/** The script of a page takes a connection for lost after 10 s. */
const WITHIN_MS = 6_000;

const READS: Partial<Record<keyof Deps, readonly string[]>> = {
  core: ['certificates', 'certificate', 'clients', 'plugins', 'status', 'enrollmentAttempts'],
  coreRetention: ['policy', 'schedule', 'runs', 'missionArchiving'],
};

/** What is shared of these is an answer of the core, and who comes second waits for the first; other work takes its time. */
const CORE_LISTS = /^(?:clients$|certificates:|attempts:)/;

/** The same deps; what they read of the core comes within 6 s, or is `unavailable`. */
export function withPromptCore(deps: Deps): Deps {
  return new Proxy(deps, {
    get(target, name) {
      if (name === 'together') return promptTogether(target.together);
      const port: unknown = Reflect.get(target, name);
      const reads = READS[name as keyof Deps];
      return reads === undefined ? port : promptPort(port as object, reads);
    },
  });
}

function promptPort(port: object, reads: readonly string[]): object {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      // Bound: an adapter may be a class with private fields, which a proxy has not.
      const method = value.bind(target) as Ask;
      return reads.includes(String(name)) ? promptly(method) : method;
    },
  });
}

function promptTogether(together: SingleFlight): SingleFlight {
  const prompt = promptly(together);
  return (key, work) => (CORE_LISTS.test(key) ? prompt : together)(key, work);
}

type Ask = (...given: never[]) => Promise<unknown>;

function promptly<A extends Ask>(ask: A): A {
  return ((...given: never[]) => withTimeout(WITHIN_MS, 'The core', () => ask(...given))) as A;
}

const YEAR_SECONDS = 31_536_000;

/** The style and the script of all pages; open, for the page to sign in has them too. */
function pageAssets(app: App, deps: Deps): void {
  for (const [path, name] of [
    [STYLE_PATH, 'pages.css'],
    [SCRIPT_PATH, 'pages.js'],
  ] as const)
    app.get(path, async function sendPageAsset(c) {
      const asset = await deps.assets.read(name);
      if (asset === undefined) throw new AppError('not_found', 'There is nothing at this address.');
      const current = c.req.query('v') === PAGES_VERSION;
      return c.body(asset.body, 200, {
        'Content-Type': asset.contentType,
        'Cache-Control': current ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
        'X-Content-Type-Options': 'nosniff',
      });
    });
}

/** In no particular order: none can take the address of another. */
export const PAGES: readonly PageFunction[] = [
  accountPage,
  addDevicePage,
  alertsPage,
  auditPage,
  certificateNewPage,
  certificatePage,
  certificatesPage,
  databasePage,
  devicesPage,
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
  morePage,
  overviewPage,
  peoplePage,
  personChangePages,
  personNewPage,
  personPage,
  personPasswordPage,
  pluginsPage,
  retentionPage,
  retentionRunsPage,
  serviceAccountPage,
  serviceAccountsPage,
  settingsPage,
  tokensPage,
  vacuumPage,
];

/** Adds them all. */
export function everyPage(app: App, given: Deps): void {
  const deps = withPromptCore(given);
  pageAssets(app, deps);
  addPages(app, deps, PAGES);
}
