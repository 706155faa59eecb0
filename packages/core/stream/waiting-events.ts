// A line of what waits to be stored, bounded by count and by characters: whoever has waited longest gives way.

export interface Waiting<T> {
  readonly length: number;
  readonly characters: number;
  add(item: T): void;
  /** From the front: at most `most`, and no more characters than that, but at least one when there is any. */
  take(most: number, mostCharacters: number): T[];
  /** Takes the oldest out. */
  drop(): T | undefined;
}

/** So many places that are empty already are given back at once. */
const MOST_EMPTY = 4_096;

export function waitingLine<T extends { characters: number }>(): Waiting<T> {
  let items: (T | undefined)[] = [];
  let first = 0;
  let characters = 0;

  function drop(): T | undefined {
    const item = items[first];
    if (item === undefined) return undefined;
    items[first++] = undefined;
    characters -= item.characters;
    if (first === items.length || (first >= MOST_EMPTY && first * 2 >= items.length)) {
      items = items.slice(first);
      first = 0;
    }
    return item;
  }

  return {
    get length() {
      return items.length - first;
    },
    get characters() {
      return characters;
    },
    add(item) {
      items.push(item);
      characters += item.characters;
    },
    take(most, mostCharacters) {
      const taken: T[] = [];
      let size = 0;
      while (taken.length < most) {
        const next = items[first];
        if (next === undefined || (taken.length > 0 && size + next.characters > mostCharacters)) break;
        size += next.characters;
        drop();
        taken.push(next);
      }
      return taken;
    },
    drop,
  };
}
