// What was thrown may be anything: its message and its code, whatever it is.

/** The message of an error, or the thing itself as text. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Why, as short as it can be said: the code or the message of what lies at the bottom of an error. */
export function causeOf(thrown: unknown): string {
  const { cause } = thrown instanceof Error ? thrown : { cause: undefined };
  return cause === undefined ? (codeOf(thrown) ?? messageOf(thrown)) : causeOf(cause);
}

/** The system's or the database's code (`ENOENT`, `28P01`), if it has one. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null || !('code' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}
