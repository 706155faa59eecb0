// A secret value: printing, serialising or inspecting it gives `***`; only `reveal()` gives the text.

/** A text that shows itself as `***` wherever it is not asked for by `reveal()`. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself. Call it where the value leaves for the system that needs it, and nowhere else. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return '***';
  }

  toJSON(): string {
    return '***';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '***';
  }
}
