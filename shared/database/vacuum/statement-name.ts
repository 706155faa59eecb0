// The name under which the statement of a vacuum job goes on, and that holds its outcome afterwards,
// so that every process finds it, also one that did not begin it.

const PREFIX = 'holdfast-vacuum';
/** Of the connection before it has its statement, and after its outcome was taken. */
export const NAMELESS = PREFIX;
const DONE = 'done';

export function statementName(job: string): string {
  return `${PREFIX} ${job}`;
}

/** At most 58 bytes, where PostgreSQL cuts at 63. */
export function outcomeName(job: string, error: string | null): string {
  return `${statementName(job)} ${error ?? DONE}`;
}

/** What a name says of that job: null when it still runs, undefined when it is none of its names. */
export function outcomeOf(job: string, name: string): { error: string | null } | null | undefined {
  if (name === statementName(job)) return null;
  const [, error] = name.startsWith(`${statementName(job)} `) ? name.split(` ${job} `) : [];
  if (error === DONE) return { error: null };
  return error !== undefined && /^[0-9A-Z]{5}$/.test(error) ? { error } : undefined;
}

/** A pattern of LIKE for the statements of every job. */
export const ANY_STATEMENT = `${PREFIX} %`;
