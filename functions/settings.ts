// GET /api/settings: the settings and thresholds in force, each with its source; secrets only as set or unset.

import { z } from '@hono/zod-openapi';
import { SECTIONS, SETTING_NAMES, SETTINGS } from '../shared/config/settings.ts';
import type { Deps } from '../shared/http/deps.ts';
import { apiRoute, jsonAnswer } from '../shared/http/route.ts';
import type { App } from './app.ts';

const settingSchema = z.object({
  name: z.string(),
  section: z.string(),
  about: z.string(),
  value: z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
  source: z.enum(['command line', 'environment', 'env file', 'generated', 'stack', 'default', 'unset']),
  secret: z.boolean(),
});

const settingsSchema = z
  .object({
    release: z.string(),
    started_at: z.iso.datetime(),
    settings: z.array(settingSchema),
    thresholds: z.record(z.string(), z.unknown()),
  })
  .openapi('Settings');

const route = apiRoute(
  {
    method: 'get',
    path: '/api/settings',
    summary: 'Settings and thresholds in force, each with its source',
    tags: ['operations'],
    responses: { 200: jsonAnswer('The settings', settingsSchema) },
  },
  { access: 'admin' },
);

export function settingsFunction(app: App, deps: Deps): void {
  app.openapi(route, function showSettings(c) {
    const settings = SETTING_NAMES.map((name) => describe(name, deps));
    const body = {
      release: deps.release,
      started_at: deps.startedAt.toISOString(),
      settings,
      thresholds: { ...deps.thresholds },
    };
    return c.json(body, 200, { 'Cache-Control': 'no-store' });
  });
}

function describe(name: (typeof SETTING_NAMES)[number], deps: Deps): z.infer<typeof settingSchema> {
  const { kind, section, about } = SETTINGS[name];
  const value = deps.settings[name];
  const shown = kind.secret ? (value === undefined ? 'unset' : 'set') : settingSchema.shape.value.parse(value ?? null);
  return { name, section: SECTIONS[section], about, value: shown, source: deps.sources[name], secret: kind.secret };
}
