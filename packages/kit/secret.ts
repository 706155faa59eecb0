// A secret value: printing, serialising or inspecting it gives `***`; only `reveal()` gives the
// text.

/** A text that shows itself as `***` wherever it is not asked for by `reveal()`. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * The text itself. Call it where the value leaves for the system that needs it, and nowhere else.
   */
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

const encoder = new TextEncoder();

/**
 * Compares secrets so that the time taken tells nothing about where they differ, nor how long they
 * are. True when the two texts are equal. Both are hashed under a fresh key first, so lengths do
 * not show.
 */
export async function constantTimeEqual(a: string, b: string): Promise<boolean> {
  const key = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const [left, right] = await Promise.all([a, b].map((text) => crypto.subtle.sign('HMAC', key, encoder.encode(text))));
  if (left === undefined || right === undefined) return false;
  const leftBytes = new Uint8Array(left);
  const rightBytes = new Uint8Array(right);
  let difference = leftBytes.length ^ rightBytes.length;
  for (let index = 0; index < leftBytes.length; index++)
    difference |= (leftBytes[index] ?? 0) ^ (rightBytes[index] ?? 0);
  return difference === 0;
}

/**
 * True when `given` is `secret`; the time depends on the length of `given` alone. Neither may be
 * empty.
 */
export function sameText(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length;
  for (let index = 0; index < given.length; index++)
    difference |= given.charCodeAt(index) ^ secret.charCodeAt(index % secret.length);
  return difference === 0 && given !== '';
}
