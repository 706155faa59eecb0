// JSON that was stored as text, by us or by somebody who changed it.

/** The object that stands in the text; a text that is none is given as it is, under `text`. */
export function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : { text };
  } catch {
    return { text };
  }
}
