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

/** What earlier measurements of the module leave behind. */
export interface History {
  failuresInRow: number;
  /** Measurements in a row at `alert_min_level` or worse. */
  pollsInRow: number;
}

export const NO_HISTORY: History = { failuresInRow: 0, pollsInRow: 0 };
