// The API of the missions over a real database: people of two groups, their devices on the stream,
// what the stream is told.

import { createHash } from 'node:crypto';
import type postgres from 'postgres';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { SECOND_MS } from '@holdfast/kit/time';
import { createMissions, type Missions } from '../missions/create-missions.ts';
import type { CoreCaller } from '../model/parts.ts';
import type { ServerEvent } from '../model/stream.ts';
import type { RunSql } from '../store/certificates.ts';
import { groupStore, GroupVectors } from '../store/groups.ts';
import { clientEndpoints } from '../store/presence.ts';
import { resourceStore, resourceWriter } from '../store/resources.ts';
import {
  type AdminAnswer,
  adminWorld,
  type AskOptions,
  byCertificate,
  START,
  subscription,
} from './fake-core-admin.ts';

export const BASE = '/Marti/api/missions';
export const JSON_TYPE = { 'content-type': 'application/json' };
/** ada and bob are in Ops, eve is in Other, ron only receives from Ops. */
export const ADA = byCertificate('ada');
export const BOB = byCertificate('bob');
export const EVE = byCertificate('eve');
export const RON = byCertificate('ron');
const GROUPS = { ada: 'core_Ops', bob: 'core_Ops', eve: 'core_Other', ron: 'core_Ops_READ' };

export interface Report {
  to: 'devices' | 'places';
  subject: readonly unknown[];
  event: ServerEvent;
  except?: string | undefined;
}

export interface MissionWorld {
  world: ReturnType<typeof adminWorld>;
  missions: Missions;
  notices: Report[];
  sql: postgres.Sql;
  /** As ada, unless it says otherwise. */
  ask(method: string, path: string, input?: AskOptions): Promise<AdminAnswer>;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into answers of every shape
  make(name: string, query?: string, as?: CoreCaller): Promise<any>;
  subscribe(name: string, as?: CoreCaller, query?: string): Promise<AdminAnswer>;
  put(name: string, contents: unknown, as?: CoreCaller): Promise<AdminAnswer>;
  placesOf(name: string): Promise<number[]>;
  /** Returns its hash. */
  addFile(name: string, group?: string): Promise<string>;
  addEvent(uid: string, callsign: string, group?: string): Promise<void>;
}

export const named = (name: string, rest = ''): string => `${BASE}/${encodeURIComponent(name)}${rest}`;

/** `run` is how the missions reach the database. Each look at the clock is a second later. */
export function missionWorld(sql: postgres.Sql, run: RunSql): MissionWorld {
  const plainly: RunSql = (use) => use(sql);
  const reports: Report[] = [];
  let nowMs = START;
  const plain = adminWorld();
  plain.end();
  const { subscriptions } = plain;
  const missions = createMissions({
    run,
    tokenKey: Buffer.alloc(32, 1),
    hostname: 'cot.example.org',
    notices: () => ({
      toDevices: (subject, event) =>
        void reports.push({ to: 'devices', subject: subject.map(({ clientUid }) => clientUid), event }),
      toPlaces: (recipient, event, except) => void reports.push({ to: 'places', subject: recipient, event, except }),
    }),
    connected: { list: () => subscriptions },
    log: plain.log,
    now: () => new Date((nowMs += SECOND_MS)),
  });
  const world = adminWorld({
    groups: groupStore(plainly),
    missions: missions.parts,
    resources: resourceStore(plainly, plainly),
    resourceWriter: resourceWriter(plainly),
    endpoints: clientEndpoints(plainly),
    subscriptions: { list: () => subscriptions, end: () => false },
  });
  for (const [name, group] of Object.entries(GROUPS)) {
    world.people.addGroup(group);
    world.people.addPerson(name, 'x').groups.push(group);
    const channel = name === 'eve' ? 'Other' : 'Ops';
    const directions = (['IN', 'OUT'] as const).map((direction) => ({ name: channel, direction }));
    subscriptions.push(subscription(name, { groups: directions }));
  }

  const ask = (method: string, path: string, input: AskOptions = {}) => world.ask(method, path, { as: ADA, ...input });
  const placesOf = async (name: string): Promise<number[]> =>
    (await groupStore(plainly).ensure([name])).map(({ bitpos }) => bitpos);

  async function vectorKey(group: string): Promise<string> {
    const places = await placesOf(group);
    const vectors = new GroupVectors(plainly);
    await vectors.ensure([places]);
    return vectors.keyOf(places);
  }

  return {
    world,
    missions,
    notices: reports,
    sql,
    ask,
    placesOf,
    make: async (name, query = '', as = ADA) =>
      (await ask('PUT', `${named(name)}?creatorUid=uid-${as.username}&${query}`, { as })).body.data[0],
    subscribe: (name, as = BOB, query = '') =>
      ask('PUT', `${named(name, '/subscription')}?uid=uid-${as.username}&${query}`, { as }),
    put: (name, contents, as = ADA) =>
      ask('PUT', `${named(name, '/contents')}?creatorUid=uid-${as.username}`, {
        as,
        json: contents,
        headers: JSON_TYPE,
      }),

    async addFile(name, group = 'Ops') {
      const hash = createHash('sha256').update(name).digest('hex');
      await sql`
        INSERT INTO resource (data, filename, name, mimetype, submitter, uid, hash, creatoruid, tool, groups)
        SELECT ${Buffer.from(name)}, ${name}, ${name}, 'text/plain', 'ada', ${`u-${name}`}, ${hash}, 'uid-ada', 'public', vector
        FROM group_vector WHERE places = ${await vectorKey(group)}`;
      return hash;
    },

    async addEvent(uid, callsign, group = 'Ops') {
      const at = new Date(START);
      const detail = `<detail><contact endpoint="*" callsign='${callsign}'/><color argb="-1"/></detail>`;
      await sql`
        INSERT INTO cot_router (uid, cot_type, how, start, "time", stale, point_hae, point_ce, point_le, detail, event_pt, groups)
        SELECT ${uid}, 'a-f-G', 'm-g', ${at}, ${at}, ${at}, 1.5, 2, 3, ${detail}, point(11.5, 48.25), vector
        FROM group_vector WHERE places = ${await vectorKey(group)}`;
    },
  };
}

/** The world of one test file, and short ways to ask it. */
export function missionSteps(core: { sql: postgres.Sql }) {
  let all: MissionWorld | undefined;
  const world = (): MissionWorld => {
    if (all === undefined) throw new Error('the world of missions is not there yet');
    return all;
  };
  beforeAll(() => {
    all = missionWorld(core.sql, (use) => use(core.sql));
  });
  afterAll(() => all?.world.end());
  beforeEach(() => {
    world().notices.length = 0;
  });
  const ask = (method: string, path: string, input?: AskOptions) => world().ask(method, path, input);
  /** But of missions that were made. */
  const changesOf = () => world().notices.filter(({ event }) => event.type !== 't-x-m-n');
  return {
    world,
    ask,
    changesOf,
    status: async (method: string, path: string, as?: CoreCaller, json?: unknown) =>
      (await ask(method, path, { ...(as && { as }), ...(json === undefined ? {} : { json, headers: JSON_TYPE }) }))
        .status,
    noticeTypes: () => changesOf().map(({ event }) => event.type),
  };
}
