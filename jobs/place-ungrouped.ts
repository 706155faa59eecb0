// Keeps every account in a group, also when groups were changed at the provider itself.

import type { Deps } from '../shared/http/deps.ts';
import { placeUngrouped } from '../shared/people/place-ungrouped.ts';

export async function run(deps: Deps, _now: Date, signal: AbortSignal): Promise<{ joined: string[]; left: string[] }> {
  return placeUngrouped(deps, signal);
}
