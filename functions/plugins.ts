// /api/plugins: the plugins of the core, and how they are started, stopped, enabled and disabled.

import { z } from '@hono/zod-openapi';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import { actorOf } from '../shared/http/sign-in.ts';
import { audited } from '../shared/verbs/audited.ts';

const tags = ['plugins'];

const pluginSchema = z
  .object({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    enabled: z.boolean(),
    started: z.boolean(),
    error: z.string().nullable().openapi({ description: 'What it failed with' }),
  })
  .openapi('Plugin');

const listRoute = apiRoute(
  {
    method: 'get',
    path: '/api/plugins',
    summary: 'Plugins of the core by name',
    tags,
    responses: { 200: jsonAnswer('All of them', z.array(pluginSchema)) },
  },
  { access: 'viewer', fails: ['upstream', 'unavailable'] },
);

const CHANGES = [
  ['start', 'Starts a plugin', { started: true }],
  ['stop', 'Stops a plugin', { started: false }],
  ['enable', 'Enables a plugin', { enabled: true }],
  ['disable', 'Disables a plugin', { enabled: false }],
] as const;

/** Adds the routes of this file. */
export function pluginsFunction(app: App, deps: Deps): void {
  app.openapi(listRoute, async function listPlugins(c) {
    const plugins = await deps.core.plugins();
    c.header('Cache-Control', 'no-store');
    return c.json(
      plugins.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
      200,
    );
  });
  for (const [word, summary, change] of CHANGES) {
    const route = apiRoute(
      {
        method: 'post',
        path: `/api/plugins/{name}/${word}`,
        summary,
        tags,
        request: { params: z.object({ name: z.string().max(256, 'must have at most 256 characters') }) },
        responses: { 200: jsonAnswer('The plugin as it is then', pluginSchema) },
      },
      { access: 'admin', fails: ['not_found', 'invalid', 'upstream', 'unavailable'] },
    );
    app.openapi(route, async function changePlugin(c) {
      const { name } = c.req.valid('param');
      const plugin = await audited(deps, { actor: actorOf(c), action: `plugin.${word}`, target: name }, () =>
        deps.core.changePlugin(name, change),
      );
      return c.json(plugin, 200);
    });
  }
}
