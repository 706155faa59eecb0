// Assembles the HTTP app: middleware in order, one line per resource, one place for errors.

import { OpenAPIHono } from '@hono/zod-openapi';
import { TrieRouter } from 'hono/router/trie-router';
import { AppError } from '@holdfast/kit/app-error';
import type { App, AppEnv } from '../shared/http/context.ts';
import { refuseUnknownMethod, csrfGuard } from '../shared/http/csrf-guard.ts';
import type { Deps } from '../shared/http/deps.ts';
import { withErrorPages } from '../shared/http/page.tsx';
import { onError, refuseInvalid } from '../shared/http/problem.ts';
import { identify, signIn } from '../shared/http/sign-in.ts';
import { alertsFunction } from './alerts.ts';
import { auditFunction, logsFunction } from './audit.ts';
import { authVerifyFunction } from './auth-verify.ts';
import { backupsFunction } from './backups.ts';
import { certDownloadsFunction, certRevocationFunction, certsFunction } from './certs.ts';
import { clientsFunction } from './clients.ts';
import { enrollmentFunction } from './enrollment.ts';
import { everyPage } from './every-page.ts';
import { groupsFunction } from './groups.ts';
import { healthFunction, metricsFunction, pingFunction } from './health.ts';
import { meCertsFunction, meFunction } from './me.ts';
import { feedsFunction } from './core/feeds.ts';
import { missionsFunction } from './core/missions.ts';
import { oauthTokenFunction } from './oauth-token.ts';
import { docsFunction, openapiFunction } from './openapi.ts';
import { opsJobsFunction } from './ops-jobs.ts';
import { pluginsFunction } from './plugins.ts';
import { retentionFunction, retentionRunsFunction } from './retention.ts';
import { serviceAccountsFunction } from './service-accounts.ts';
import { lockoutsFunction, sessionsFunction, tokensFunction } from './sessions.ts';
import { settingsFunction } from './settings.ts';
import { signInFunction } from './sign-in.tsx';
import { tracksFunction } from './core/tracks.ts';
import { userGroupsFunction, userPasswordFunction, usersFunction } from './users.ts';
import { vacuumFunction } from './vacuum.ts';

/**
 * Builds the app for one host. Everything under /api and /metrics that is not open answers 401
 * before 404.
 */
export function createApp(deps: Deps): App {
  // Hono's default first tries a router that can't take these paths, then uses this one.
  const app: App = new OpenAPIHono<AppEnv>({
    strict: false,
    defaultHook: refuseInvalid,
    router: new TrieRouter(),
  });
  app.onError(withErrorPages(onError(deps.log, deps.audit)));
  app.notFound(() => {
    throw new AppError('not_found', 'Nothing at this address. Check the address.');
  });
  app.use(async function nameRequest(c, next) {
    c.header('X-Request-Id', c.env.requestId);
    await next();
  });

  pingFunction(app);
  authVerifyFunction(app, deps);
  oauthTokenFunction(app, deps);
  signInFunction(app, deps);
  app.use('/api/*', signIn(deps.authenticator));
  app.use('/metrics/*', signIn(deps.authenticator));
  app.use(refuseUnknownMethod);
  app.use(
    '/api/*',
    csrfGuard('json', (c) => identify(c, deps.authenticator)),
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
  missionsFunction(app, deps);
  tracksFunction(app, deps);
  pluginsFunction(app, deps);
  feedsFunction(app, deps);
  retentionRunsFunction(app, deps);
  opsJobsFunction(app, deps);
  vacuumFunction(app, deps);
  backupsFunction(app, deps);
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
