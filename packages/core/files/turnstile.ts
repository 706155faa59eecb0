// A bounded number at a time, and no more than a share of it for one person.

export interface Turnstile {
  /** What lets the next one in, to be called once the work has ended, however often; undefined when there is no room. */
  enter(who: string): (() => void) | undefined;
  readonly inside: number;
}

export function turnstile({ most, mostOfOne }: { most: number; mostOfOne: number }): Turnstile {
  const counts = new Map<string, number>();
  let inside = 0;

  function leave(who: string): void {
    inside--;
    const left = (counts.get(who) ?? 1) - 1;
    if (left === 0) counts.delete(who);
    else counts.set(who, left);
  }

  return {
    enter(who) {
      const own = counts.get(who) ?? 0;
      if (inside >= most || own >= mostOfOne) return undefined;
      inside++;
      counts.set(who, own + 1);
      let isInside = true;
      return () => {
        if (isInside) leave(who);
        isInside = false;
      };
    },
    get inside() {
      return inside;
    },
  };
}
