// Base64 with Web APIs alone: of text, as HTTP Basic and SMTP have it, and back to bytes.

/** The UTF-8 bytes of the text in base64. */
export function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
