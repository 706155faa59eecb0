// The four levels of the specification, from harmless to urgent.

export const STATUSES = ['ok', 'note', 'warning', 'critical'] as const;

export type Status = (typeof STATUSES)[number];

/** 0 for ok, growing with urgency. */
export function urgency(status: Status): number {
  return STATUSES.indexOf(status);
}

/** The most urgent one; `ok` of none. */
export function worstOf(statuses: readonly Status[]): Status {
  return statuses.reduce<Status>((worst, status) => (urgency(status) > urgency(worst) ? status : worst), 'ok');
}
