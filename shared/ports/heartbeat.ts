// A sign of life for somebody elsewhere: a dead host cannot alert.

export interface HeartbeatState {
  /** ISO 8601; null before the first one. */
  last_ok_at: string | null;
  failures_in_row: number;
  /** Of the last one; null when it succeeded. */
  error: string | null;
}

export interface Heartbeat {
  /** Rejects with an AppError that does not name the address: it may hold a secret. */
  beat(): Promise<void>;
  state(): Promise<HeartbeatState>;
}
