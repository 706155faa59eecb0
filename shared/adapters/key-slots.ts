// Even parts of a range of keys, of which many may not be in use, and what a row stands for that was taken out of one.

/** Keys from `first` up to `end`, which is no longer in it; rows are taken from `place` on, and from `first` on after its end. */
export interface Slot {
  first: number;
  place: number;
  end: number;
}

type Range = Pick<Slot, 'first' | 'end'>;

/** About so many slots that together are the ranges. Their places are random: what comes in goes by a beat of its own. */
export function spread(ranges: readonly Range[], slots: number): Slot[] {
  const each = Math.max(1, Math.floor(slots / ranges.length));
  return ranges.flatMap((range) => parts(range, each));
}

function parts({ first, end }: Range, count: number): Slot[] {
  const edge = (index: number): number => first + Math.floor(((end - first) * index) / count);
  return Array.from({ length: count }, (_, index) => ({ first: edge(index), end: edge(index + 1) }))
    .filter((part) => part.end > part.first)
    .map((part) => ({ ...part, place: part.first + Math.floor(Math.random() * (part.end - part.first)) }));
}

/**
 * Of a slot with fewer than `most` rows all were taken. Of another one `most` were, and the keys that had to be passed for them say
 * how many there are in all: that estimate is right on average, whatever gaps there are (the last row is where it was ended, so it
 * says nothing).
 */
export function weighed<T extends { slot: number; id: number }>(
  rows: readonly T[],
  slots: readonly Slot[],
  most: number,
): (T & { weight: number })[] {
  const taken = new Map<number, { rows: number; farthest: number }>();
  for (const { slot: index, id } of rows) {
    const slot = slots[index];
    const known = taken.get(index);
    const passed = slot === undefined ? 0 : distance(slot, id);
    taken.set(index, { rows: (known?.rows ?? 0) + 1, farthest: Math.max(known?.farthest ?? 0, passed) });
  }
  return rows.map((row) => {
    const [slot, of] = [slots[row.slot], taken.get(row.slot)];
    if (slot === undefined || of === undefined || of.rows < most) return { ...row, weight: 1 };
    const perKey = (most - 1) / of.farthest;
    return { ...row, weight: Math.max(1, ((slot.end - slot.first) * perKey) / most) };
  });
}

function distance({ first, place, end }: Slot, id: number): number {
  return id >= place ? id - place : end - place + (id - first);
}
