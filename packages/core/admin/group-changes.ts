// Serves the changes of /Marti/api/groups: active groups, and reloading groups from the directory.

import { z } from 'zod';
import { type GroupRow, groupsOf, rowsOf } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer } from '../http/answers.ts';
import { type AdminContext, type AdminRoute, demanded, readJson } from '../http/route.ts';
import type { GroupState } from '../store/groups.ts';
import type { AdminApiOptions } from './options.ts';

const BASE = '/Marti/api/groups';
const MAX_ROWS = 70_000;

/** Other members of a group may stand there; they change nothing. */
const groupsSchema = z
  .array(z.object({ name: z.string(), direction: z.enum(['IN', 'OUT']), active: z.boolean().nullish() }))
  .max(MAX_ROWS);
const bitsSchema = z.array(z.int().min(0)).max(MAX_ROWS);
const namesSchema = z.array(z.string().min(1).max(256)).max(10_000);

export function groupChangeRoutes(options: AdminApiOptions): AdminRoute[] {
  const { people, activeGroups, regroup } = options;

  /** What is not wanted is switched off; what is no group of theirs is passed over. */
  async function keepOn(
    username: string,
    rows: readonly GroupRow[],
    wanted: (row: GroupRow) => boolean,
    clientUid: string | undefined,
  ): Promise<Response> {
    const states = rows.map((row): GroupState => {
      return { name: row.group.name, direction: row.direction, enabled: wanted(row) };
    });
    await activeGroups.set(username, states);
    await regroup([username], clientUid);
    return emptyAnswer();
  }

  async function wantedGroups(c: AdminContext): Promise<(row: GroupRow) => boolean> {
    const given = await readJson(c, groupsSchema);
    const on = given.filter(({ active }) => active ?? true);
    const keys = new Set(on.map(({ name, direction }) => `${direction} ${name}`));
    return ({ group, direction }) => keys.has(`${direction} ${group.name}`);
  }

  async function switchGroups(c: AdminContext): Promise<Response> {
    const wanted = await wantedGroups(c);
    const { caller } = c.env;
    return keepOn(caller.username, await groupsOf(caller, options), wanted, c.req.query('clientUid'));
  }

  async function switchBits(c: AdminContext): Promise<Response> {
    const bits = new Set(await readJson(c, bitsSchema));
    const { caller } = c.env;
    const rows = await groupsOf(caller, options);
    return keepOn(caller.username, rows, ({ group }) => bits.has(group.bitpos), c.req.query('clientUid'));
  }

  async function switchForUser(c: AdminContext): Promise<Response> {
    const username = demanded(c, 'username');
    const wanted = await wantedGroups(c);
    const memberships = await people.find(username);
    if (memberships === undefined) throw new CoreFault('not found', `User ${username} not found.`);
    return keepOn(username, await rowsOf(username, memberships, options, true), wanted, undefined);
  }

  async function retake(usernames: readonly string[]): Promise<void> {
    people.forget(usernames);
    await regroup(usernames, undefined);
  }

  return [
    { path: `${BASE}/active`, handlers: { PUT: switchGroups } },
    { path: `${BASE}/activebits`, handlers: { PUT: switchBits } },
    { path: `${BASE}/activeForce`, handlers: { PUT: switchForUser } },
    {
      path: `${BASE}/update`,
      handlers: {
        POST: async function updateMany(c) {
          await retake(await readJson(c, namesSchema));
          return emptyAnswer();
        },
      },
    },
    {
      path: `${BASE}/update/:username`,
      handlers: {
        GET: async function updateOne(c) {
          await retake([c.req.param('username') ?? '']);
          return emptyAnswer();
        },
      },
    },
  ];
}
