// /api/plugins: lists the plugins of the core, and starts, stops, enables and disables them.

import { z } from '@hono/zod-openapi';
import { changePlugin, listPlugins } from '../shared/core/change-plugin.ts';
import type { App } from '../shared/http/context.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { actorOf } from '../shared/http/sign-in.ts';

const tags = ['plugins'];

const pluginSchema = z
  .object({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    enabled: z.boolean(),
    started: z.boolean(),
    error: z.string().nullable().openapi({ description: 'Its error' }),
  })
  .openapi('Plugin');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/plugins',
    summary: 'Lists the plugins of the core by name',
    tags,
    responses: { 200: jsonAnswer('All plugins', z.array(pluginSchema)) },
  },
  { access: 'viewer', fails: ['upstream', 'unavailable'] },
);

const CHANGES = [
  ['start', 'Starts a plugin'],
  ['stop', 'Stops a plugin'],
  ['enable', 'Enables a plugin'],
  ['disable', 'Disables a plugin'],
] as const;

const CHANGE_ROUTES = CHANGES.map(([change, summary]) => {
  const route = apiRoute(
    {
      method: 'post',
      path: `/api/plugins/{name}/${change}`,
      summary,
      tags,
      request: { params: z.object({ name: z.string().max(256, 'must have at most 256 characters') }) },
      responses: { 200: jsonAnswer('The plugin as it is afterwards', pluginSchema) },
    },
    { access: 'admin', fails: ['not_found', 'invalid', 'upstream', 'unavailable'] },
  );
  return { change, route };
});

/** Adds the routes of this file. */
export function pluginsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function showPlugins(c) {
    const plugins = await listPlugins(deps);
    c.header('Cache-Control', 'no-store');
    return c.json(plugins, 200);
  });
  for (const { change, route } of CHANGE_ROUTES)
    app.openapi(route, async function setPlugin(c) {
      const { name } = c.req.valid('param');
      const plugin = await changePlugin({ deps, actor: actorOf(c) }, { name, change });
      return c.json(plugin, 200);
    });
}
