// What tells that the provider is up, and which release it speaks for.

import type { IdentityApiOptions, IdentityRoute } from './route.ts';
import { administers } from './sign-in.ts';

export function systemRoutes({ release }: IdentityApiOptions): IdentityRoute[] {
  return [
    {
      path: '/root/config/',
      open: true,
      handlers: {
        GET: (c) =>
          c.json({
            error_reporting: {
              enabled: false,
              sentry_dsn: '',
              environment: '',
              send_pii: false,
              traces_sample_rate: 0,
            },
            capabilities: [],
            cache_timeout: 0,
            cache_timeout_flows: 0,
            cache_timeout_policies: 0,
          }),
      },
    },
    {
      path: '/admin/version/',
      handlers: {
        GET: (c) => {
          administers(c.get('caller'));
          return c.json({
            version_current: release,
            version_latest: release,
            version_latest_valid: true,
            build_hash: '',
            outdated: false,
            outpost_outdated: false,
          });
        },
      },
    },
  ];
}
