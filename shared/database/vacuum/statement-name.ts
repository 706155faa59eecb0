// Builds the application name of a vacuum statement, which holds its outcome afterwards, so that
// every process finds it.

const PREFIX = 'holdfast-vacuum';
/** The connection's name before its statement, and after its outcome was read. */
export const NAMELESS = PREFIX;
const DONE = 'done';

export function statementName(job: string): string {
  return `${PREFIX} ${job}`;
}

/** At most 58 bytes, where PostgreSQL cuts at 63. */
export function outcomeName(job: string, error: string | null): string {
  return `${statementName(job)} ${error ?? DONE}`;
}

/**
 * Reads a name of the job: null if it is still running, undefined if the name is not of this job.
 */
export function outcomeOf(job: string, name: string): { error: string | null } | null | undefined {
  if (name === statementName(job)) return null;
  const [, error] = name.startsWith(`${statementName(job)} `) ? name.split(` ${job} `) : [];
  if (error === DONE) return { error: null };
  return error !== undefined && /^[0-9A-Z]{5}$/.test(error) ? { error } : undefined;
}

/** A LIKE pattern for the statements of all jobs. */
export const ANY_STATEMENT = `${PREFIX} %`;
