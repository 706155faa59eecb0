// Lists the plugins of the core, and starts, stops, enables and disables them.

import { audited } from '../audit/audited.ts';
import type { Actor, Audit } from '../audit/port.ts';
import type { Core, CorePlugin } from './port.ts';

export const PLUGIN_CHANGES = {
  start: { started: true },
  stop: { started: false },
  enable: { enabled: true },
  disable: { enabled: false },
} as const;

export type PluginChange = keyof typeof PLUGIN_CHANGES;

interface PluginContext {
  deps: { core: Pick<Core, 'changePlugin'>; audit: Pick<Audit, 'intend' | 'conclude'> };
  actor: Actor;
}

/** By name; `unavailable` while the plugin process is down. */
export async function listPlugins({ core }: { core: Pick<Core, 'plugins'> }): Promise<CorePlugin[]> {
  const plugins = await core.plugins();
  return plugins.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Resolves with the plugin as it is afterwards; `not_found` when there is none of that name. */
export async function changePlugin(
  { deps, actor }: PluginContext,
  { name, change }: { name: string; change: PluginChange },
): Promise<CorePlugin> {
  return audited(deps, { actor, action: `plugin.${change}`, target: name }, () =>
    deps.core.changePlugin(name, PLUGIN_CHANGES[change]),
  );
}
