// /Marti/api/tls/attempts: the last attempts to enroll on 8446, newest first. Of our own: a release has no such call.

import { wrapped } from '../http/answers.ts';
import type { AdminApiOptions, AdminRoute } from './route.ts';

export function enrollmentAttemptRoutes({ enrollmentAttempts, nodeId }: AdminApiOptions): AdminRoute[] {
  return [
    {
      path: '/Marti/api/tls/attempts',
      handlers: {
        GET: (c) => wrapped('EnrollmentAttempt', enrollmentAttempts.list(c.req.query('username')), nodeId),
      },
    },
  ];
}
