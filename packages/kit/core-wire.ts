// Shapes on the wire between management and the light core.

import type { Retained, RetentionLimits } from './retention.ts';

/** `not connected`: a device with a certificate was not let in to the stream. */
export const ATTEMPT_RESULTS = ['signed', 'refused', 'not connected'] as const;

/** Somebody tried to enroll, or was not let in. */
export interface EnrollmentAttempt {
  /** ISO 8601. */
  at: string;
  address: string;
  username: string;
  /** Empty for `not connected`. */
  clientUid: string;
  result: (typeof ATTEMPT_RESULTS)[number];
  /** In a sentence; empty for `signed`. */
  reason: string;
}

/** A run as the core tells of it. Times are ISO 8601. */
export interface CoreRetentionRun {
  /** Of whoever has ordered it, else of the core. */
  id: string;
  trigger: 'schedule' | 'order';
  state: RetentionRunState;
  startedAt: string;
  finishedAt: string | null;
  limits: RetentionLimits;
  /** So far, of the types that have a limit. `missions` counts missions. */
  rows: Partial<Record<Retained, number>>;
  /** What went with missions, besides `rows`. */
  included: { cot: number; files: number };
  /**
   * How many rows it will delete in all, with what goes with missions; null while that is not
   * known.
   */
  expected: number | null;
  /** Freed for later rows, an estimate; null when the core does not say. */
  bytes: number | null;
  error: string | null;
}

export interface RetentionRunOrder {
  /** A UUID. The same one again is the same run. */
  id: string;
  /** No type that the core's policy keeps, and no limit later than that policy has it now. */
  limits: RetentionLimits;
  /** It ends with an error before it would delete more. */
  maxRows: number | null;
}

/** One of several core nodes, as the asked one knows it. */
export interface CoreNode {
  /** `core`, `core-2`. */
  node: string;
  /** `stopped` has said so, `lost` has not. */
  state: 'up' | 'stopped' | 'lost';
  /** When it was last heard, and when it was started; ISO 8601. */
  heardAt: string;
  startedAt: string;
  version: string;
  /** As the other parts of the stack reach it: `https://core-2:8443`, `tls://core-2:8089`. */
  api: string;
  enrollment: string;
  streaming: string;
  clients: number;
  maxClients: number;
  memoryBytes: number;
  /** With more the process ends. */
  memoryCapBytes: number;
}

/** The nodes of a cluster as one of them sees it. */
export interface CoreCluster {
  /** The one that answers. */
  node: string;
  /** Whether it reaches the message server. Otherwise it hears no other node. */
  isBusUp: boolean;
  /** By name, with itself. */
  nodes: CoreNode[];
}

/** From so many connected clients on, a position of each uid at most once in so many seconds. */
export interface ThinningRow {
  clients: number;
  seconds: number;
}

const MAX_THINNING_ROWS = 20;

/** `off` (no rows), `auto`, or rows such as `1000:120,10000:240`; undefined for any other text. */
export function parseThinning(text: string): ThinningRow[] | 'auto' | undefined {
  if (text === 'auto') return text;
  if (text === 'off') return [];
  const rows = text.split(',').map((row): ThinningRow => {
    const [, clients, seconds] = /^ *(\d{1,7}):(\d{1,4}) *$/.exec(row) ?? [];
    return { clients: Number(clients), seconds: Number(seconds) };
  });
  const isRow = ({ clients, seconds }: ThinningRow, at: number): boolean =>
    clients > (rows[at - 1]?.clients ?? -1) && seconds >= 1 && seconds <= 3_600;
  return rows.length <= MAX_THINNING_ROWS && rows.every(isRow) ? rows : undefined;
}

export type RetentionRunState = 'running' | 'done' | 'failed' | 'interrupted';
