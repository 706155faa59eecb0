// Every page of console and portal: one line each.

import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { alertsPage } from '../console/alerts.tsx';
import { auditPage } from '../console/audit.tsx';
import { databasePage } from '../console/database.tsx';
import { healthModulePage } from '../console/health-module.tsx';
import { jobPage } from '../console/job.tsx';
import { jobsPage } from '../console/jobs.tsx';
import { certificateNewPage } from '../console/certificate-new.tsx';
import { certificatePage } from '../console/certificate.tsx';
import { certificatesPage } from '../console/certificates.tsx';
import { devicesPage } from '../console/devices.tsx';
import { enrollmentPage } from '../console/enrollment.tsx';
import { lockoutsPage } from '../console/lockouts.tsx';
import { logsPage } from '../console/logs.tsx';
import { overviewPage } from '../console/overview.tsx';
import { addDevicePage } from '../portal/add-device.tsx';
import { guidePages } from '../portal/guides.tsx';
import { vacuumPage } from '../console/vacuum.tsx';
import { retentionRunsPage } from '../console/retention-runs.tsx';
import { retentionPage } from '../console/retention.tsx';
import { groupPage } from '../console/group.tsx';
import { groupsPage } from '../console/groups.tsx';
import { peoplePage } from '../console/people.tsx';
import { personChangePages } from '../console/person-changes.ts';
import { personNewPage } from '../console/person-new.tsx';
import { personPasswordPage } from '../console/person-password.tsx';
import { personPage } from '../console/person.tsx';
import { pluginsPage } from '../console/plugins.tsx';
import { serviceAccountPage } from '../console/service-account.tsx';
import { serviceAccountsPage } from '../console/service-accounts.tsx';
import { settingsPage } from '../console/settings.tsx';
import { tokensPage } from '../console/tokens.tsx';
import { homePage } from '../portal/home.tsx';
import { accountPage } from './account.tsx';
import { pageAssets } from './assets.ts';
import { morePage } from './more.tsx';
import { withPromptCore } from './prompt-core.ts';

/** Adds them all. */
export function everyPage(app: App, given: Deps): void {
  const deps = withPromptCore(given);
  pageAssets(app, deps);
  morePage(app, deps);
  overviewPage(app, deps);
  healthModulePage(app, deps);
  databasePage(app, deps);
  retentionPage(app, deps);
  retentionRunsPage(app, deps);
  homePage(app, deps);
  addDevicePage(app, deps);
  guidePages(app, deps);
  accountPage(app, deps);
  vacuumPage(app, deps);
  jobsPage(app, deps);
  jobPage(app, deps);
  enrollmentPage(app, deps);
  alertsPage(app, deps);
  auditPage(app, deps);
  logsPage(app, deps);
  lockoutsPage(app, deps);
  peoplePage(app, deps);
  // Before the page of one person: `new` is nobody's number.
  personNewPage(app, deps);
  personPage(app, deps);
  personChangePages(app, deps);
  personPasswordPage(app, deps);
  groupsPage(app, deps);
  groupPage(app, deps);
  pluginsPage(app, deps);
  serviceAccountPage(app, deps);
  serviceAccountsPage(app, deps);
  settingsPage(app, deps);
  tokensPage(app, deps);
  certificatesPage(app, deps);
  certificateNewPage(app, deps);
  // After the two, whose paths it would take for certificates.
  certificatePage(app, deps);
  devicesPage(app, deps);
}
