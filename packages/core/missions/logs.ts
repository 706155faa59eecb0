// Reads and writes the log of missions. Entries are changed by their author, and by owners of all
// of their missions.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { CoreFault, emptyAnswer, json, wrapped } from '../http/answers.ts';
import { type AdminContext, invalid, isAdmin, readJson } from '../http/route.ts';
import { nameKey } from '@holdfast/kit/names';
import {
  type LogEntry,
  may,
  MISSION_LIMITS,
  type MissionPermission,
  type MissionWithGroups,
} from '../model/mission.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import { toLogView } from './mission-views.ts';
import { changeWindow, isoDate, label, longText } from './request.ts';

const TYPE = 'com.bbn.marti.sync.model.LogEntry';
const uid = label(MISSION_LIMITS.uid);
const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? null);
const list = <T extends z.ZodType>(schema: T) =>
  z
    .array(schema)
    .max(MISSION_LIMITS.logMembers)
    .nullish()
    .transform((value) => [...new Set(value ?? [])]);

const Entry = z.object({
  id: z.string().max(MISSION_LIMITS.uid).nullish(),
  content: longText,
  creatorUid: uid.default(''),
  entryUid: optional(uid),
  missionNames: z.array(label(MISSION_LIMITS.name).min(1)).min(1).max(MISSION_LIMITS.logMembers),
  dtg: optional(isoDate),
  contentHashes: list(label(MISSION_LIMITS.keyword)),
  keywords: list(label(MISSION_LIMITS.keyword).min(1)),
});

export class LogHandlers {
  readonly #options: MissionApiOptions;
  readonly #access: MissionAccess;
  readonly #logs;
  readonly #announce;
  readonly #hearers;

  readonly list = async (c: AdminContext): Promise<Response> => {
    const { mission } = await this.#access.visitWith('MISSION_READ', c);
    const entries = await this.#logs.of(mission, changeWindow(c, this.#options.now(), false));
    return wrapped(
      TYPE,
      entries.map((entry) => toLogView(entry, [mission.name])),
      this.#options.nodeId,
    );
  };

  readonly read = async (c: AdminContext): Promise<Response> => {
    const entry = await this.#entry(c.req.param('id') ?? '');
    const seen = (await this.#visits(c, entry)).filter(
      (visit) => visit !== undefined && may(visit.role, 'MISSION_READ'),
    );
    if (seen.length === 0) throw absent(entry.id);
    const names = seen.flatMap((visit) => visit?.mission.name ?? []);
    return wrapped(TYPE, [toLogView(entry, names)], this.#options.nodeId);
  };

  readonly add = async (c: AdminContext): Promise<Response> => {
    const { id, ...given } = await readJson(c, Entry);
    if ((id ?? '') !== '') throw invalid('a new entry has no id: change one that is there by PUT');
    return this.#save(c, { ...given, id: randomUUID(), username: c.env.caller.username }, []);
  };

  readonly change = async (c: AdminContext): Promise<Response> => {
    const { id, ...given } = await readJson(c, Entry);
    if ((id ?? '') === '') throw invalid('id must say which entry is meant');
    const entry = await this.#entry(id ?? '');
    const before = await this.#demanded(c, entry);
    return this.#save(c, { ...given, id: entry.id, username: entry.username }, before);
  };

  readonly remove = async (c: AdminContext): Promise<Response> => {
    const entry = await this.#entry(c.req.param('id') ?? '');
    const missions = await this.#demanded(c, entry);
    await this.#logs.remove(entry.id);
    await this.#tell(missions, entry.creatorUid);
    return emptyAnswer();
  };

  constructor(options: MissionApiOptions, access: MissionAccess) {
    this.#options = options;
    this.#access = access;
    const { logs, announce, subscriptions } = options.missions;
    this.#logs = logs;
    this.#announce = announce;
    this.#hearers = audience(subscriptions, options.subscriptions);
  }

  async #entry(id: string): Promise<LogEntry> {
    const entry = id.length > MISSION_LIMITS.uid || id.includes('\0') ? undefined : await this.#logs.find(id);
    if (entry === undefined) throw absent(id);
    return entry;
  }

  /** Of each mission of the entry; undefined for those that the caller does not see. */
  async #visits(c: AdminContext, { id }: LogEntry): Promise<(Visit | undefined)[]> {
    const visits: (Visit | undefined)[] = [];
    for (const guid of await this.#logs.missionsOf(id)) visits.push(await this.#access.visitIfSeen(c, { guid }));
    return visits;
  }

  /**
   * Its missions, when the caller may change it. What one cannot see looks as if it were not there.
   */
  async #demanded(c: AdminContext, entry: LogEntry): Promise<MissionWithGroups[]> {
    const visits = await this.#visits(c, entry);
    const { caller } = c.env;
    if (!visits.some((visit) => visit !== undefined && may(visit.role, 'MISSION_READ'))) throw absent(entry.id);
    const isAuthor = nameKey(entry.username) === nameKey(caller.username);
    const needed: MissionPermission = isAuthor ? 'MISSION_WRITE' : 'MISSION_DELETE';
    if (!isAdmin(caller) && !visits.every((visit) => visit !== undefined && may(visit.role, needed)))
      throw new CoreFault('forbidden', 'Only its author and the owners of its missions may change this log entry.');
    const missions = visits.flatMap((visit) => visit?.mission ?? []);
    for (const { guid } of missions) await this.#access.visitToWrite('MISSION_WRITE', c, { guid });
    return missions;
  }

  async #save(
    c: AdminContext,
    { missionNames, ...entry }: Omit<z.infer<typeof Entry>, 'id'> & { id: string; username: string },
    before: readonly MissionWithGroups[],
  ): Promise<Response> {
    const missions = new Map<number, MissionWithGroups>();
    for (const name of missionNames) {
      const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c, { name: name.trim() });
      missions.set(mission.id, mission);
    }
    const saved = await this.#logs.save(entry, [...missions.keys()], this.#options.now());
    for (const mission of before) missions.set(mission.id, mission);
    await this.#tell([...missions.values()], entry.creatorUid);
    const data = toLogView(saved, missionNames);
    return json({ version: '3', type: TYPE, data, nodeId: this.#options.nodeId }, 201);
  }

  async #tell(missions: readonly MissionWithGroups[], author: string): Promise<void> {
    for (const mission of missions) this.#announce.changed('log', mission, await this.#hearers(mission), author);
  }
}

function absent(id: string): CoreFault {
  return new CoreFault('not found', `Log entry ${id.slice(0, MISSION_LIMITS.uid)} not found.`);
}
