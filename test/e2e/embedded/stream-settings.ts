// What the settings of the stream change.

import { expect } from 'vitest';
import type { SettingName } from '../../../shared/settings/table.ts';
import type { TestStack } from './embedded.ts';

export const THINNING = '0:7';

/** Of a stack that was started with `THINNING`; the token reads its health. */
export function streamBehaviours(
  stack: () => TestStack,
  token: string,
): Partial<Record<SettingName, () => Promise<void>>> {
  return {
    STREAM_THINNING: async () => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${stack().file().api}/api/health/core`, { headers });
      expect(((await answer.json()) as { data: unknown }).data).toMatchObject({ thinning_seconds: 7 });
    },
  };
}
