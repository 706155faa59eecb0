// Plugins by the core's admin API.

import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import { shortened } from '../domain/plain-text.ts';
import type { Core, CorePlugin } from '../ports/core.ts';
import { type CoreCalls, type CorePort, WITHIN_MS } from './core-request.ts';

const BASE = '/Marti/api/plugins/info';
const TRIES = 5;
const LONGEST_ERROR = 2_000;

const plugin = z
  .object({
    name: z.string(),
    description: z.string().nullish(),
    version: z.string().nullish(),
    enabled: z.boolean(),
    started: z.boolean(),
    exceptionMessage: z.string().nullish(),
  })
  .transform((read): CorePlugin => ({
    name: read.name,
    description: read.description ?? '',
    version: read.version ?? '',
    enabled: read.enabled,
    started: read.started,
    error: shortened(read.exceptionMessage ?? '', LONGEST_ERROR) || null,
  }));
const NONE = z.union([z.object({ data: z.array(z.unknown()).max(0) }), z.array(z.unknown()).max(0)]);

function noPlugin(name: string): AppError {
  const said = JSON.stringify(name.slice(0, 100));
  return new AppError('not_found', `The core has no plugin ${said}; GET /api/plugins lists them.`);
}

export function corePlugins(port: CorePort): Pick<Core, 'plugins' | 'changePlugin'> {
  async function list(calls: CoreCalls): Promise<CorePlugin[]> {
    const path = `${BASE}/all`;
    const answer = await calls.ask('GET', path);
    if (answer.status === 500 && NONE.safeParse(answer.json).success)
      throw new AppError('unavailable', 'The plugin process of the core is down. Remedy: start the core again.');
    return calls.read(`GET ${path}`, answer, z.object({ data: z.array(plugin) })).data;
  }

  async function named(calls: CoreCalls, name: string): Promise<CorePlugin> {
    const found = (await list(calls)).find((each) => each.name === name);
    if (found === undefined) throw noPlugin(name);
    return found;
  }

  return {
    plugins: () => list(port.within(WITHIN_MS)),

    async changePlugin(name, change) {
      const calls = port.within(WITHIN_MS);
      await named(calls, name);
      const [what, wanted] =
        'enabled' in change ? (['enabled', change.enabled] as const) : (['started', change.started] as const);
      const path = `${BASE}/${what}`;
      const answer = await calls.ask('POST', path, { query: { name, status: String(wanted) } });
      if (answer.status !== 200) throw port.failure(`POST ${path}`, answer);
      // A plugin takes a moment to start, and may not: what it is then is what counts.
      for (let tried = 1; tried < TRIES; tried += 1) {
        const now = await named(calls, name);
        if (now[what] === wanted || now.error !== null) return now;
        await calls.moment();
      }
      return named(calls, name);
    },
  };
}
