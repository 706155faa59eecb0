// Base64 of text, as HTTP Basic and SMTP have it.

/** The UTF-8 bytes of the text in base64. */
export function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
