// Puts accounts without a group into one, even if groups were changed at the provider.

import type { Deps } from '../shared/http/deps.ts';
import { placeUngrouped } from '../shared/people/place-ungrouped.ts';

export async function run(deps: Deps, _now: Date, signal: AbortSignal): Promise<{ joined: string[]; left: string[] }> {
  return placeUngrouped(deps, signal);
}
