// How much of what waits is whose. When there is too much of it, whoever has less than an even share need not rest.

export interface Shares {
  add(who: string, characters: number): void;
  /** One that was added waits no more. */
  take(who: string, characters: number): void;
  /** Whether it is an even share of these, or more. */
  isEven(who: string, of: { events: number; characters: number }): boolean;
}

export function createShares(): Shares {
  const shares = new Map<string, { events: number; characters: number }>();

  return {
    add(who, characters) {
      const share = shares.get(who);
      if (share === undefined) {
        shares.set(who, { events: 1, characters });
        return;
      }
      share.events++;
      share.characters += characters;
    },
    take(who, characters) {
      const share = shares.get(who);
      if (share === undefined) return;
      share.events--;
      share.characters -= characters;
      if (share.events === 0) shares.delete(who);
    },
    isEven(who, of) {
      const share = shares.get(who);
      if (share === undefined) return false;
      return Math.max(share.events / of.events, share.characters / of.characters) * shares.size >= 1;
    },
  };
}
