// A line of what waits to be stored, bounded by count and by characters: whoever has waited longest gives way.

/** So many places that are empty already are given back at once. */
const MOST_EMPTY = 4_096;

export class WaitingLine<T extends { characters: number }> {
  #items: (T | undefined)[] = [];
  #first = 0;
  #characters = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  get characters(): number {
    return this.#characters;
  }

  add(item: T): void {
    this.#items.push(item);
    this.#characters += item.characters;
  }

  /** From the front: at most `most`, and no more characters than that, but at least one when there is any. */
  take(most: number, mostCharacters: number): T[] {
    const taken: T[] = [];
    let size = 0;
    while (taken.length < most) {
      const next = this.#items[this.#first];
      if (next === undefined || (taken.length > 0 && size + next.characters > mostCharacters)) break;
      size += next.characters;
      this.drop();
      taken.push(next);
    }
    return taken;
  }

  /** Takes the oldest out. */
  drop(): T | undefined {
    const item = this.#items[this.#first];
    if (item === undefined) return undefined;
    this.#items[this.#first++] = undefined;
    this.#characters -= item.characters;
    if (this.#first === this.#items.length || (this.#first >= MOST_EMPTY && this.#first * 2 >= this.#items.length)) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}
