// Base64 with Web APIs alone: of text, as HTTP Basic and SMTP have it, and back to bytes.

/** The UTF-8 bytes of the text in base64. */
export function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

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
