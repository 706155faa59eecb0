// The four levels of the specification, from harmless to urgent.

export const STATUSES = ['ok', 'note', 'warning', 'critical'] as const;

export type Status = (typeof STATUSES)[number];
