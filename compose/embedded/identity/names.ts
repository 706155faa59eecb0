// When two names are the same name: without case, and however their accents are written.

/** The form in which names are compared and found. The database server's own locale knows only ASCII, so it is made here. */
export function nameKey(name: string): string {
  return name.normalize('NFC').toLowerCase();
}

/** True for text that PostgreSQL can keep unchanged: no NUL, no half of a character. */
export function isKeepable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}
