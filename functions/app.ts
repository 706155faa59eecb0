// The whole HTTP surface: middleware in order, one line per resource, one place for errors.

import { OpenAPIHono } from '@hono/zod-openapi';
import { AppError } from '../shared/domain/app-error.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App, AppEnv } from '../shared/http/env.ts';
import { withErrorPages } from '../shared/http/page.tsx';
import { onError } from '../shared/http/problem.ts';
import { identify, signIn } from '../shared/http/sign-in.ts';
import { refuseInvalid } from '../shared/http/refuse-invalid.ts';
import { refuseUnknownMethod, unsafeGuard } from '../shared/http/unsafe-guard.ts';
import { alertsFunction } from './alerts.ts';
import { auditFunction } from './audit.ts';
import { authVerifyFunction } from './auth-verify.ts';
import { certRevocationFunction } from './cert-revocation.ts';
import { clientsFunction } from './clients.ts';
import { certDownloadsFunction } from './cert-downloads.ts';
import { certsFunction } from './certs.ts';
import { docsFunction } from './docs.ts';
import { enrollmentFunction } from './enrollment.ts';
import { groupsFunction } from './groups.ts';
import { healthFunction } from './health.ts';
import { lockoutsFunction } from './lockouts.ts';
import { logsFunction } from './logs.ts';
import { meFunction } from './me.ts';
import { meCertsFunction } from './me-certs.ts';
import { metricsFunction } from './metrics.ts';
import { oauthTokenFunction } from './oauth-token.ts';
import { openapiFunction } from './openapi.ts';
import { opsJobsFunction } from './ops-jobs.ts';
import { pingFunction } from './ping.ts';
import { pluginsFunction } from './plugins.ts';
import { retentionRunsFunction } from './retention-runs.ts';
import { serviceAccountsFunction } from './service-accounts.ts';
import { sessionsFunction } from './sessions.ts';
import { settingsFunction } from './settings.ts';
import { retentionFunction } from './retention.ts';
import { signInFunction } from './sign-in.tsx';
import { tokensFunction } from './tokens.ts';
import { everyPage } from './pages/every-page.ts';
import { userGroupsFunction } from './user-groups.ts';
import { userPasswordFunction } from './user-password.ts';
import { usersFunction } from './users.ts';
import { vacuumFunction } from './vacuum.ts';

/** Builds the app for one host. Everything under /api and /metrics that is not open answers 401 before 404. */
export function createApp(deps: Deps): App {
  const app: App = new OpenAPIHono<AppEnv>({ strict: false, defaultHook: refuseInvalid });
  app.onError(withErrorPages(onError(deps.log, deps.audit)));
  app.notFound(() => {
    throw new AppError('not_found', 'There is nothing at this address.');
  });
  app.use(async function nameRequest(c, next) {
    c.header('X-Request-Id', c.env.requestId);
    await next();
  });

  pingFunction(app);
  authVerifyFunction(app, deps);
  oauthTokenFunction(app, deps);
  signInFunction(app, deps);
  app.use('/api/*', signIn(deps.doors));
  app.use('/metrics/*', signIn(deps.doors));
  app.use(refuseUnknownMethod);
  app.use(
    '/api/*',
    unsafeGuard('json', (c) => identify(c, deps.doors)),
  );
  healthFunction(app, deps);
  usersFunction(app, deps);
  certRevocationFunction(app, deps);
  userGroupsFunction(app, deps);
  userPasswordFunction(app, deps);
  enrollmentFunction(app, deps);
  groupsFunction(app, deps);
  certsFunction(app, deps);
  certDownloadsFunction(app, deps);
  meFunction(app, deps);
  serviceAccountsFunction(app, deps);
  clientsFunction(app, deps);
  pluginsFunction(app, deps);
  retentionRunsFunction(app, deps);
  opsJobsFunction(app, deps);
  vacuumFunction(app, deps);
  meCertsFunction(app, deps);
  retentionFunction(app, deps);
  alertsFunction(app, deps);
  auditFunction(app, deps);
  metricsFunction(app, deps);
  tokensFunction(app, deps);
  sessionsFunction(app, deps);
  settingsFunction(app, deps);
  logsFunction(app, deps);
  lockoutsFunction(app, deps);
  openapiFunction(app, deps);
  docsFunction(app, deps);
  everyPage(app, deps);
  return app;
}
