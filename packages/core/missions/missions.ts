// Creates, changes, reads and deletes missions and their keywords.

import { visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, json, wrapped } from '../http/answers.ts';
import { type AdminContext, demanded, flag, invalid, isAdmin, wholeNumber } from '../http/route.ts';
import { may, MISSION_LIMITS, type MissionDraft, type MissionWithGroups } from '../model/mission.ts';
import type { MissionKey } from '../store/missions.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import { isPossiblePassword } from './credentials.ts';
import {
  changeWindow,
  guidOf,
  keywordOf,
  keywordsRequest,
  missionKey,
  type MissionRequest,
  missionRequest,
  requireMissionName,
  reportedUid,
} from './request.ts';
import { toMissionView } from './mission-views.ts';

const TYPE = 'Mission';
/** From this version on, whoever may not read a mission gets it without what is in it. */
const EMPTIED_FROM_VERSION = 3;

export class MissionHandlers {
  readonly #options: MissionApiOptions;
  readonly #access: MissionAccess;
  readonly #reads;
  readonly #writes;
  readonly #subscriptions;
  readonly #tokens;
  readonly #passwords;
  readonly #announce;
  readonly #hearers;

  readonly put = async (c: AdminContext): Promise<Response> => {
    const key = missionKey(c);
    if (!('name' in key)) throw new CoreFault('invalid', 'Invalid Request: a mission is made by its name');
    requireMissionName(key.name);
    const request = await missionRequest(c);
    const creatorUid = reportedUid(c, 'creatorUid');
    const sees = await visiblePlaces(c.env.caller, this.#options);
    const there = await this.#reads.find(key, sees);
    return there === undefined
      ? this.#create(c, key.name, request, creatorUid)
      : this.#update(c, key, request, creatorUid);
  };

  readonly read = async (c: AdminContext): Promise<Response> => {
    const visited = await this.#access.visit(c);
    const { mission, role } = visited;
    const password = c.req.query('password') ?? '';
    if (password !== '') {
      await this.#requirePassword(c, mission, password);
      if (role === undefined && mission.inviteOnly)
        throw new CoreFault('forbidden', `The mission ${mission.name} is invite-only.`);
      return this.#answered([await this.#whole(c, visited, await this.#tokens.ofAccess(mission))]);
    }
    if (may(role, 'MISSION_READ')) return this.#answered([await this.#whole(c, visited)]);
    if (Number(c.req.header('api_version')) >= EMPTIED_FROM_VERSION) return this.#answered([toMissionView(mission)]);
    throw new CoreFault('forbidden', `You do not have the permission MISSION_READ in the mission ${mission.name}.`);
  };

  /** For whoever may read anyway, or has the password. Ends with the password. */
  readonly accessToken = async (c: AdminContext): Promise<Response> => {
    const { mission, role } = await this.#access.visit(c);
    const password = c.req.query('password') ?? '';
    if (password !== '' && mission.passwordHash !== null) await this.#requirePassword(c, mission, password);
    else if (!may(role, 'MISSION_READ'))
      throw new CoreFault('forbidden', `Password required (mission ${mission.name})`);
    const data = await this.#tokens.ofAccess(mission);
    return json({ version: '3', type: 'java.lang.String', data, nodeId: this.#options.nodeId }, 201);
  };

  readonly setPassword = async (c: AdminContext): Promise<Response> => {
    const password = c.req.query('password') ?? '';
    if (!isPossiblePassword(password)) throw invalid('password must have 1 to 256 characters');
    const { mission } = await this.#access.visitToWrite('MISSION_SET_PASSWORD', c);
    const passwordHash = await this.#passwords.hash(password);
    return this.#changeDraft(c, mission, { passwordHash });
  };

  readonly clearPassword = async (c: AdminContext): Promise<Response> => {
    const { mission } = await this.#access.visitToWrite('MISSION_SET_PASSWORD', c);
    return this.#changeDraft(c, mission, { passwordHash: null });
  };

  readonly setExpiration = async (c: AdminContext): Promise<Response> => {
    const expiration = wholeNumber(c, 'expiration', -1, -1);
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    return this.#changeDraft(c, mission, { expiration });
  };

  readonly removeByName = (c: AdminContext) => this.#remove(c, missionKey(c));
  readonly removeByGuid = (c: AdminContext) => this.#remove(c, { guid: guidOf(demanded(c, 'guid')) });
  readonly setKeywords = async (c: AdminContext): Promise<Response> => {
    const keywords = await keywordsRequest(c);
    return this.#changeKeywords(c, ({ id }) => this.#writes.setKeywords(id, keywords, this.#options.now()));
  };

  readonly clearKeywords = (c: AdminContext) =>
    this.#changeKeywords(c, ({ id }) => this.#writes.setKeywords(id, [], this.#options.now()));
  readonly removeKeyword = (c: AdminContext) =>
    this.#changeKeywords(c, ({ id }) => this.#writes.removeKeyword(id, keywordOf(c), this.#options.now()));

  constructor(options: MissionApiOptions, access: MissionAccess) {
    this.#options = options;
    this.#access = access;
    const { reads, writes, subscriptions, tokens, passwords, announce } = options.missions;
    this.#reads = reads;
    this.#writes = writes;
    this.#subscriptions = subscriptions;
    this.#tokens = tokens;
    this.#passwords = passwords;
    this.#announce = announce;
    this.#hearers = audience(this.#subscriptions, options.subscriptions);
  }

  async #create(c: AdminContext, name: string, request: MissionRequest, creatorUid: string): Promise<Response> {
    this.#access.requireRate(c);
    const { caller } = c.env;
    const places = await this.#access.groupsFor(c, request.groups);
    const sees = await visiblePlaces(caller, this.#options);
    const passwordHash = request.password === undefined ? undefined : await this.#passwords.hash(request.password);
    const made = await this.#writes.create({
      name,
      draft: { ...request.draft, passwordHash },
      creatorUid,
      username: caller.username,
      places,
      sees,
      maxOwned: isAdmin(caller) ? MISSION_LIMITS.missions : MISSION_LIMITS.owned,
      now: this.#options.now(),
    });
    if (made === undefined) throw new CoreFault('conflict', `A mission named ${name} already exists.`);
    const mission = await this.#existing(name, places);
    const token = await this.#tokens.ofSubscription(mission, made.subscriptionUid);
    if (creatorUid !== '') await this.#subscriptions.setToken(mission.id, made.subscriptionUid, token);
    if (!mission.inviteOnly) this.#announce.created(mission, places, creatorUid);
    const groups = mission.groups.map((group) => group.name);
    return this.#answered([toMissionView(mission, { groups, token, ownerRole: 'MISSION_OWNER' })], 201);
  }

  async #existing(name: string, places: readonly number[]): Promise<MissionWithGroups> {
    const mission = await this.#reads.find({ name }, places);
    if (mission === undefined) throw new CoreFault('gone', `The mission ${name} was deleted in the meantime.`);
    return mission;
  }

  /** What was said is changed, all else stays. */
  async #update(c: AdminContext, key: MissionKey, request: MissionRequest, author: string): Promise<Response> {
    const { mission, role, sees } = await this.#access.visitToWrite('MISSION_WRITE', c, key);
    const { draft, password, groups } = request;
    const require = (
      permission: 'MISSION_SET_ROLE' | 'MISSION_SET_PASSWORD' | 'MISSION_UPDATE_GROUPS',
      isReported: boolean,
    ) => {
      if (isReported && !may(role, permission))
        throw new CoreFault(
          'forbidden',
          `You do not have the permission ${permission} in the mission ${mission.name}.`,
        );
    };
    const places = groups === undefined ? undefined : await this.#access.groupsFor(c, groups);
    const isMoved = places !== undefined && places.join() !== mission.groups.map(({ place }) => place).join();
    require('MISSION_SET_ROLE', draft.defaultRole !== undefined && draft.defaultRole !== mission.defaultRole);
    require('MISSION_SET_PASSWORD', password !== undefined);
    require('MISSION_UPDATE_GROUPS', isMoved ||
      (draft.inviteOnly !== undefined && draft.inviteOnly !== mission.inviteOnly));
    if (isMoved && !flag(c, 'allowGroupChange'))
      throw new CoreFault('forbidden', 'To change the groups of a mission, set allowGroupChange=true.');
    const passwordHash = password === undefined ? undefined : await this.#passwords.hash(password);
    const isNamed = Object.values(draft).some((value) => value !== undefined) || passwordHash !== undefined || isMoved;
    if (isNamed) {
      await this.#writes.update(
        mission.id,
        { ...draft, passwordHash },
        isMoved ? places : undefined,
        this.#options.now(),
      );
      this.#announce.changed('metadata', mission, await this.#hearers(mission), author);
    }
    const changed = (await this.#reads.find({ guid: mission.guid }, isMoved ? 'all' : sees)) ?? mission;
    return this.#answered([await this.#whole(c, { mission: changed, sees, role })]);
  }

  async #changeDraft(c: AdminContext, mission: MissionWithGroups, draft: MissionDraft): Promise<Response> {
    await this.#writes.update(mission.id, draft, undefined, this.#options.now());
    this.#announce.changed('metadata', mission, await this.#hearers(mission), reportedUid(c, 'creatorUid'));
    return emptyAnswer();
  }

  async #requirePassword(c: AdminContext, mission: MissionWithGroups, password: string): Promise<void> {
    this.#access.requirePasswordRate(c);
    if (mission.passwordHash !== null && (await this.#passwords.matches(password, mission.passwordHash))) return;
    throw new CoreFault('forbidden', `Wrong password for the mission ${mission.name}.`);
  }

  /** With everything in it, and with its changes when they were asked for. */
  async #whole(c: AdminContext, { mission, sees }: Visit, token?: string) {
    const contents = await this.#reads.contents([mission.id], MISSION_LIMITS.contents, sees);
    const groups = mission.groups.map(({ name }) => name);
    const attachments = await this.#options.missions.links.attachments([mission.id]);
    const window = changeWindow(c, this.#options.now(), false);
    const changes = flag(c, 'changes') ? await this.#reads.changes(mission, window, sees) : undefined;
    const logs = flag(c, 'logs') ? await this.#options.missions.logs.of(mission, window) : undefined;
    return toMissionView(mission, {
      contents,
      groups,
      token,
      attachments,
      logs,
      ...(changes === undefined ? {} : { changes }),
    });
  }

  async #remove(c: AdminContext, key: MissionKey): Promise<Response> {
    const author = reportedUid(c, 'creatorUid');
    const visited = await this.#access.visitToWrite('MISSION_DELETE', c, key);
    const { mission } = visited;
    const shown = await this.#whole(c, visited);
    if (flag(c, 'deepDelete')) await this.#removeContents(c, visited);
    const places = mission.groups.map(({ place }) => place);
    if (await this.#writes.remove(mission, author, this.#options.now()))
      this.#announce.deleted(mission, places, author);
    return this.#answered([shown]);
  }

  /**
   * What others have sent is not theirs to delete: of a file it is known whose it is, of an event
   * it is not.
   */
  async #removeContents(c: AdminContext, { mission, sees }: Visit): Promise<void> {
    const { caller } = c.env;
    const submitter = isAdmin(caller) ? undefined : caller.username;
    if (isAdmin(caller)) while (await this.#writes.removeEvents(mission.id));
    while (await this.#writes.removeFiles(mission.id, sees, submitter));
  }

  async #changeKeywords(c: AdminContext, change: (mission: MissionWithGroups) => Promise<void>): Promise<Response> {
    const author = reportedUid(c, 'creatorUid');
    const visited = await this.#access.visitToWrite('MISSION_WRITE', c);
    const { mission, sees, role } = visited;
    await change(mission);
    this.#announce.changed('keywords', mission, await this.#hearers(mission), author);
    const changed = (await this.#reads.find({ guid: mission.guid }, sees)) ?? mission;
    return this.#answered([await this.#whole(c, { mission: changed, sees, role })]);
  }

  #answered(data: readonly object[], status = 200): Response {
    return status === 200
      ? wrapped(TYPE, data, this.#options.nodeId)
      : json({ version: '3', type: TYPE, data, nodeId: this.#options.nodeId }, status);
  }
}
