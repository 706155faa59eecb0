// Keeps what each node of the cluster says of itself, also of nodes that have stopped or were lost.

import { getHeapStatistics } from 'node:v8';
import { z } from 'zod';
import { urlHost } from '@holdfast/kit/addresses';
import type { CoreNode } from '@holdfast/kit/core-wire';
import { DAY_MS } from '@holdfast/kit/time';

/** What a node tells the others of itself, as of `CoreNode`; `memoryBytes` again with each beat. */
export const announcementSchema = z.object({
  version: z.string(),
  startedAt: z.string(),
  api: z.string(),
  enrollment: z.string(),
  streaming: z.string(),
  maxClients: z.int(),
  memoryCapBytes: z.int(),
  memoryBytes: z.int(),
});
export type Announcement = z.infer<typeof announcementSchema>;

export interface AnnouncedNode {
  version: string;
  /** Under which the other parts of the stack reach it. */
  host: string;
  ports: { api: number; enrollment: number; streaming: number };
  maxClients: number;
  now: () => Date;
}

/** What a node that starts now says of itself, each time. */
export function announcing({ version, host, ports, maxClients, now }: AnnouncedNode): () => Announcement {
  const at = urlHost(host);
  const own = {
    version,
    startedAt: now().toISOString(),
    api: `https://${at}:${ports.api}`,
    enrollment: `https://${at}:${ports.enrollment}`,
    streaming: `tls://${at}:${ports.streaming}`,
    maxClients,
    memoryCapBytes: getHeapStatistics().heap_size_limit,
  };
  return () => ({ ...own, memoryBytes: getHeapStatistics().used_heap_size });
}

/** A node that is not there: `stopped` has said so, `lost` has not. */
export const absentSchema = z.object({
  node: z.string(),
  state: z.enum(['stopped', 'lost']),
  /** When it was last heard, since 1970. */
  heardMs: z.number(),
  announcement: announcementSchema,
});
export type Absent = z.infer<typeof absentSchema>;

const KEPT_MS: Record<Absent['state'], number> = { stopped: DAY_MS, lost: 7 * DAY_MS };

interface Known {
  state: CoreNode['state'];
  heardMs: number;
  announcement: Announcement;
}

export class Nodes {
  readonly #now: () => Date;
  readonly #known = new Map<string, Known>();

  constructor(now: () => Date) {
    this.#now = now;
  }

  announced(node: string, announcement: Announcement): void {
    this.#known.set(node, { state: 'up', heardMs: this.#now().getTime(), announcement });
  }

  heard(node: string, memoryBytes: number | undefined): void {
    const known = this.#known.get(node);
    if (known === undefined) return;
    known.heardMs = this.#now().getTime();
    if (memoryBytes !== undefined) known.announcement.memoryBytes = memoryBytes;
  }

  ended(node: string, state: Absent['state']): void {
    const known = this.#known.get(node);
    if (known !== undefined) known.state = state;
  }

  /** Those that are not there: a node that starts learns of them by this. */
  absent(): Absent[] {
    const nowMs = this.#now().getTime();
    return [...this.#known].flatMap(([node, { state, heardMs, announcement }]) => {
      if (state === 'up') return [];
      if (nowMs - heardMs <= KEPT_MS[state]) return [{ node, state, heardMs, announcement }];
      this.#known.delete(node);
      return [];
    });
  }

  /** What another node says of them; what is known here is newer. */
  learn(absent: readonly Absent[]): void {
    for (const { node, ...known } of absent) if (!this.#known.has(node)) this.#known.set(node, known);
  }

  /** All that are known, by name. `clients`: how many each has. */
  list(clients: ReadonlyMap<string, number>): CoreNode[] {
    this.absent();
    const all = [...this.#known].map(([node, { state, heardMs, announcement }]) => ({
      node,
      state,
      heardAt: new Date(heardMs).toISOString(),
      clients: clients.get(node) ?? 0,
      ...announcement,
    }));
    return all.toSorted((one, other) => one.node.localeCompare(other.node, 'en', { numeric: true }));
  }
}
