// A mission as a whole: made, changed, read, its keywords, deleted.

import { visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, json, wrapped } from '../http/answers.ts';
import { type AdminContext, demanded, flag, isAdmin } from '../http/route.ts';
import { may, MISSION_LIMITS, type MissionWithGroups } from '../model/mission.ts';
import type { MissionKey } from '../store/missions.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import {
  changeWindow,
  guidOf,
  keywordOf,
  keywordsRequest,
  missionKey,
  type MissionRequest,
  missionRequest,
  requireMissionName,
  uidSaid,
} from './request.ts';
import { shownMission } from './shown.ts';

const TYPE = 'Mission';
/** From this version on, whoever may not read a mission gets it without what is in it. */
const EMPTIED_FROM_VERSION = 3;

export function missionHandlers(options: MissionApiOptions, access: MissionAccess) {
  const { nodeId, now, missions } = options;
  const { reads, writes, subscriptions, tokens, passwords, announce } = missions;
  const hearers = audience(subscriptions, options.subscriptions);

  async function put(c: AdminContext): Promise<Response> {
    const key = missionKey(c);
    if (!('name' in key)) throw new CoreFault('invalid', 'Invalid Request: a mission is made by its name');
    requireMissionName(key.name);
    const request = await missionRequest(c);
    const creatorUid = uidSaid(c, 'creatorUid');
    const sees = await visiblePlaces(c.env.caller, options);
    const there = await reads.find(key, sees);
    return there === undefined ? create(c, key.name, request, creatorUid) : update(c, key, request, creatorUid);
  }

  async function create(c: AdminContext, name: string, request: MissionRequest, creatorUid: string): Promise<Response> {
    access.requireRate(c);
    const { caller } = c.env;
    const places = await access.groupsFor(c, request.groups);
    const sees = await visiblePlaces(caller, options);
    const passwordHash = request.password === undefined ? undefined : await passwords.hash(request.password);
    const made = await writes.create({
      name,
      draft: { ...request.draft, passwordHash },
      creatorUid,
      username: caller.username,
      places,
      sees,
      mostOwned: isAdmin(caller) ? MISSION_LIMITS.missions : MISSION_LIMITS.owned,
      now: now(),
    });
    if (made === undefined) throw new CoreFault('conflict', `There is a mission called ${name} already.`);
    const mission = await existing(name, places);
    const token = await tokens.ofSubscription(mission, made.subscriptionUid);
    if (creatorUid !== '') await subscriptions.setToken(mission.id, made.subscriptionUid, token);
    if (!mission.inviteOnly) announce.created(mission, places, creatorUid);
    const groups = mission.groups.map((group) => group.name);
    return answered([shownMission(mission, { groups, token, ownerRole: 'MISSION_OWNER' })], 201);
  }

  async function existing(name: string, places: readonly number[]): Promise<MissionWithGroups> {
    const mission = await reads.find({ name }, places);
    if (mission === undefined) throw new CoreFault('gone', `The mission called ${name} was deleted meanwhile.`);
    return mission;
  }

  /** What was said is changed, all else stays. */
  async function update(c: AdminContext, key: MissionKey, request: MissionRequest, author: string): Promise<Response> {
    const { mission, role, sees } = await access.visitToWrite('MISSION_WRITE', c, key);
    const { draft, password, groups } = request;
    const require = (
      permission: 'MISSION_SET_ROLE' | 'MISSION_SET_PASSWORD' | 'MISSION_UPDATE_GROUPS',
      said: boolean,
    ) => {
      if (said && !may(role, permission))
        throw new CoreFault(
          'forbidden',
          `You do not have the permission ${permission} in the mission ${mission.name}.`,
        );
    };
    const places = groups === undefined ? undefined : await access.groupsFor(c, groups);
    const isMoved = places !== undefined && places.join() !== mission.groups.map(({ place }) => place).join();
    require('MISSION_SET_ROLE', draft.defaultRole !== undefined && draft.defaultRole !== mission.defaultRole);
    require('MISSION_SET_PASSWORD', password !== undefined);
    require('MISSION_UPDATE_GROUPS', isMoved ||
      (draft.inviteOnly !== undefined && draft.inviteOnly !== mission.inviteOnly));
    if (isMoved && !flag(c, 'allowGroupChange'))
      throw new CoreFault('forbidden', 'The groups of a mission change only with allowGroupChange=true.');
    const passwordHash = password === undefined ? undefined : await passwords.hash(password);
    const isSaid = Object.values(draft).some((value) => value !== undefined) || passwordHash !== undefined || isMoved;
    if (isSaid) {
      await writes.update(mission.id, { ...draft, passwordHash }, isMoved ? places : undefined, now());
      announce.metadata(mission, await hearers(mission), author);
    }
    const changed = (await reads.find({ guid: mission.guid }, isMoved ? 'all' : sees)) ?? mission;
    return answered([await whole(c, { mission: changed, sees, role })]);
  }

  async function read(c: AdminContext): Promise<Response> {
    const visited = await access.visit(c);
    const { mission, role } = visited;
    const password = c.req.query('password') ?? '';
    if (password !== '') {
      await requirePassword(c, mission, password);
      if (role === undefined && mission.inviteOnly)
        throw new CoreFault('forbidden', `One has to be invited to the mission ${mission.name}.`);
      return answered([await whole(c, visited, await tokens.ofAccess(mission))]);
    }
    if (may(role, 'MISSION_READ')) return answered([await whole(c, visited)]);
    if (Number(c.req.header('api_version')) >= EMPTIED_FROM_VERSION) return answered([shownMission(mission)]);
    throw new CoreFault('forbidden', `You do not have the permission MISSION_READ in the mission ${mission.name}.`);
  }

  async function requirePassword(c: AdminContext, mission: MissionWithGroups, password: string): Promise<void> {
    access.requirePasswordRate(c);
    if (mission.passwordHash !== null && (await passwords.matches(password, mission.passwordHash))) return;
    throw new CoreFault('forbidden', `This is not the password of the mission ${mission.name}.`);
  }

  /** With everything in it, and with its changes when they were asked for. */
  async function whole(c: AdminContext, { mission, sees }: Visit, token?: string) {
    const contents = await reads.contents([mission.id], MISSION_LIMITS.contents, sees);
    const groups = mission.groups.map(({ name }) => name);
    const changes = flag(c, 'changes') ? await reads.changes(mission, changeWindow(c, now(), false), sees) : undefined;
    return shownMission(mission, { contents, groups, token, ...(changes === undefined ? {} : { changes }) });
  }

  async function remove(c: AdminContext, key: MissionKey): Promise<Response> {
    const author = uidSaid(c, 'creatorUid');
    const visited = await access.visitToWrite('MISSION_DELETE', c, key);
    const { mission } = visited;
    const shown = await whole(c, visited);
    if (flag(c, 'deepDelete')) await removeContents(c, visited);
    const places = mission.groups.map(({ place }) => place);
    if (await writes.remove(mission, author, now())) announce.deleted(mission, places, author);
    return answered([shown]);
  }

  /** What others have sent is not theirs to delete: of a file it is known whose it is, of an event it is not. */
  async function removeContents(c: AdminContext, { mission, sees }: Visit): Promise<void> {
    const { caller } = c.env;
    const submitter = isAdmin(caller) ? undefined : caller.username;
    if (isAdmin(caller)) while (await writes.removeEvents(mission.id));
    while (await writes.removeFiles(mission.id, sees, submitter));
  }

  async function changeKeywords(
    c: AdminContext,
    change: (mission: MissionWithGroups) => Promise<void>,
  ): Promise<Response> {
    const author = uidSaid(c, 'creatorUid');
    const visited = await access.visitToWrite('MISSION_WRITE', c);
    const { mission, sees, role } = visited;
    await change(mission);
    announce.keywords(mission, await hearers(mission), author);
    const changed = (await reads.find({ guid: mission.guid }, sees)) ?? mission;
    return answered([await whole(c, { mission: changed, sees, role })]);
  }

  function answered(data: readonly object[], status = 200): Response {
    return status === 200 ? wrapped(TYPE, data, nodeId) : json({ version: '3', type: TYPE, data, nodeId }, status);
  }

  return {
    put,
    read,
    removeByName: (c: AdminContext) => remove(c, missionKey(c)),
    removeByGuid: (c: AdminContext) => remove(c, { guid: guidOf(demanded(c, 'guid')) }),
    setKeywords: async (c: AdminContext): Promise<Response> => {
      const keywords = await keywordsRequest(c);
      return changeKeywords(c, ({ id }) => writes.setKeywords(id, keywords, now()));
    },
    clearKeywords: (c: AdminContext) => changeKeywords(c, ({ id }) => writes.setKeywords(id, [], now())),
    removeKeyword: (c: AdminContext) => changeKeywords(c, ({ id }) => writes.removeKeyword(id, keywordOf(c), now())),
  };
}
