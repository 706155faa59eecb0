// /Marti/api/retention: what is kept how long, and when the rest is deleted.

import { z } from 'zod';
import { RETAINED } from '@holdfast/kit/retention';
import { emptyAnswer, wrapped } from '../http/answers.ts';
import { readJson, readText } from '../http/body.ts';
import type { AdminContext, AdminRoute } from '../http/route.ts';
import type { AdminApiOptions } from './options.ts';
import { archiveSchema, policyChangeSchema } from './retention-settings.ts';

const BASE = '/Marti/api/retention';
const POLICIES = 'RetentionPolicies';
const SCHEDULE = 'RetentionServiceSchedule';
const ARCHIVE = 'MissionArchiveConfig';
const STORE = 'MissionArchive';
const RUN = 'RetentionRun';
const MOST_SCHEDULE_BYTES = 1_000;

const limitSchema = z.iso.datetime({ offset: true }).optional();
const orderSchema = z.strictObject({
  id: z.uuid(),
  limits: z.strictObject(Object.fromEntries(RETAINED.map((type) => [type, limitSchema]))),
  mostRows: z.int().min(0).nullable(),
});

export function retentionRoutes({ retention, retentionRuns, nodeId }: AdminApiOptions): AdminRoute[] {
  async function changePolicy(c: AdminContext): Promise<Response> {
    const given = await readJson(c, policyChangeSchema);
    return wrapped(POLICIES, retention.changePolicy(withoutMissing(given)), nodeId);
  }

  /** The body is the bare text. What is no schedule is answered with nothing, and changes nothing. */
  async function changeSchedule(c: AdminContext): Promise<Response> {
    const text = (await readText(c, MOST_SCHEDULE_BYTES)).trim();
    return retention.changeSchedule(text) ? wrapped(SCHEDULE, retention.schedule(), nodeId) : emptyAnswer();
  }

  async function changeArchive(c: AdminContext): Promise<Response> {
    const given = await readJson(c, archiveSchema.partial());
    return wrapped(ARCHIVE, retention.changeArchive(withoutMissing(given)), nodeId);
  }

  async function beginRun(c: AdminContext): Promise<Response> {
    const { id, limits, mostRows } = await readJson(c, orderSchema);
    return wrapped(RUN, await retentionRuns.begin({ id, limits: withoutMissing(limits), mostRows }), nodeId);
  }

  return [
    {
      path: `${BASE}/policy`,
      handlers: { GET: () => wrapped(POLICIES, retention.policy(), nodeId), PUT: changePolicy },
    },
    {
      path: `${BASE}/service/schedule`,
      handlers: { GET: () => wrapped(SCHEDULE, retention.schedule(), nodeId), PUT: changeSchedule },
    },
    {
      path: `${BASE}/missionarchiveconfig`,
      handlers: { GET: () => wrapped(ARCHIVE, retention.archive(), nodeId), PUT: changeArchive },
    },
    {
      path: `${BASE}/missionarchive`,
      handlers: { GET: () => wrapped(STORE, JSON.stringify(retention.archived()), nodeId) },
    },
    {
      path: `${BASE}/runs`,
      handlers: { GET: async () => wrapped(RUN, await retentionRuns.runs(), nodeId), POST: beginRun },
    },
  ];
}

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

function withoutMissing<T extends object>(given: T): Given<T> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Given<T>;
}
