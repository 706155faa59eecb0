// The difference that the tiles of the Map page make.

import { expect } from 'vitest';
import { sessionOf } from '../browser/house.ts';
import type { TestStack } from './stack-file.ts';

/** `stack` has tiles of tiles.example.org, `other` has none. */
export function mapBehaviours(stacks: () => { stack: TestStack; other: TestStack }) {
  const imagesAt = async (each: TestStack): Promise<string | undefined> => {
    const { api, webadmin } = each.file();
    const cookie = `holdfast=${await sessionOf(api, webadmin)}`;
    const policy = (await fetch(`${api}/map`, { headers: { cookie } })).headers.get('content-security-policy');
    return /img-src ([^;]*)/.exec(policy ?? '')?.[1];
  };
  return {
    MAP_TILE_URL: async () => {
      const { stack, other } = stacks();
      expect(await imagesAt(stack)).toBe("https://tiles.example.org 'self' data:");
      expect(await imagesAt(other)).toBe("'self' data:");
    },
  };
}
