// /Marti/api/plugins: the embedded core has no plugins, and says so.

import { wrapped } from '../http/answers.ts';
import { demanded, invalid } from './body.ts';
import type { AdminApiOptions, AdminContext, AdminRoute } from './route.ts';

const BASE = '/Marti/api/plugins/info';

export function pluginRoutes({ nodeId }: AdminApiOptions): AdminRoute[] {
  function refuseUnknown(c: AdminContext): never {
    throw invalid(`there is no plugin "${demanded(c, 'name')}"`);
  }

  return [
    {
      path: `${BASE}/all`,
      handlers: { GET: () => wrapped('tak.server.plugins.PluginInfo', [], nodeId) },
    },
    {
      path: `${BASE}/all/started`,
      handlers: {
        POST: function startAll() {
          throw invalid('there is no plugin');
        },
      },
    },
    ...['started', 'enabled', 'archive'].map((what) => ({
      path: `${BASE}/${what}`,
      handlers: { POST: refuseUnknown },
    })),
  ];
}
