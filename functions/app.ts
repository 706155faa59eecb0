// The whole HTTP surface: middleware in order, one line per resource, one place for errors.

import { OpenAPIHono } from '@hono/zod-openapi';
import { AppError } from '../shared/domain/app-error.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App, AppEnv } from '../shared/http/env.ts';
import { onError } from '../shared/http/problem.ts';
import { signIn } from '../shared/http/sign-in.ts';
import { unsafeGuard } from '../shared/http/unsafe-guard.ts';
import { alertsFunction } from './alerts.ts';
import { docsFunction } from './docs.ts';
import { healthFunction } from './health.ts';
import { logsFunction } from './logs.ts';
import { metricsFunction } from './metrics.ts';
import { openapiFunction } from './openapi.ts';
import { pingFunction } from './ping.ts';
import { settingsFunction } from './settings.ts';

/** Builds the app for one host. Everything under /api and /metrics that is not open answers 401 before 404. */
export function createApp(deps: Deps): App {
  const app: App = new OpenAPIHono<AppEnv>({ strict: false, defaultHook: refuseInvalid });
  app.onError(onError(deps.log));
  app.notFound(() => {
    throw new AppError('not_found', 'There is nothing at this address.');
  });
  app.use(async function nameRequest(c, next) {
    c.header('X-Request-Id', c.env.requestId);
    await next();
  });

  pingFunction(app);
  app.use('/api/*', signIn(deps.settings));
  app.use('/metrics/*', signIn(deps.settings));
  app.use('/api/*', unsafeGuard());
  healthFunction(app, deps);
  alertsFunction(app, deps);
  metricsFunction(app, deps);
  settingsFunction(app, deps);
  logsFunction(app, deps);
  openapiFunction(app, deps);
  docsFunction(app, deps);
  return app;
}

type HookResult = { success: true } | { success: false; error: { issues: { path: PropertyKey[]; message: string }[] } };

function refuseInvalid(result: HookResult): void {
  if (result.success) return;
  const fields = result.error.issues.map((issue) => ({
    path: issue.path.map(String).join('.'),
    message: issue.message,
  }));
  throw new AppError('invalid', fields.map((field) => `${field.path}: ${field.message}`).join('; '), { fields });
}
