// What every core does that can say something to everybody: a fake, the embedded one.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CoreNotices } from '../../shared/core/port.ts';
import { codeOf } from './core-retention-contract.ts';

export interface CoreNoticesWorld {
  core: CoreNotices;
  /** How many are connected. */
  clients: number;
  /** What each of them was told since the start. */
  reported(): Promise<string[]>;
  end(): Promise<void>;
}

const TAKEN = [
  'a',
  'In 5 minutes: <b>"maintenance"</b> & more, für alle 🦊',
  'two\nlines',
  'x'.repeat(1000),
  '🦊'.repeat(1000),
];
const REFUSED = {
  'of no character': '',
  'of 1001 characters': 'x'.repeat(1001),
  'of 1001 emoji': '🦊'.repeat(1001),
  'with a tab': 'a\tb',
  'with a carriage return': 'a\rb',
  'with NUL': 'a\u0000b',
  'with a control character beyond ASCII': 'a\u0085b',
  'with what is no character': '\uFFFE',
  'with half of a pair': 'half \uD83E',
};

export function coreNoticesContract(what: string, make: () => Promise<CoreNoticesWorld>): void {
  describe(`notices of a core (${what})`, () => {
    let world: CoreNoticesWorld;
    beforeAll(async () => {
      world = await make();
    });
    afterAll(() => world.end());

    it('reach everybody who is connected, each once, as they were written', async () => {
      const before = await world.reported();
      for (const text of TAKEN) expect(await world.core.announce(text)).toBe(world.clients);
      expect(await world.reported()).toEqual([...before, ...TAKEN]);
    });

    it.each(Object.entries(REFUSED))('%s are refused, and nobody hears of them', async (_, text) => {
      const before = await world.reported();
      expect(await codeOf(world.core.announce(text))).toBe('invalid');
      expect(await world.reported()).toEqual(before);
    });
  });
}
