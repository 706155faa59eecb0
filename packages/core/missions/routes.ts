// Defines the routes of /Marti/api/missions in matching order. Most exist twice: by name and by
// guid.

import { nameKey } from '@holdfast/kit/names';
import { contact, visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, json, wrapped } from '../http/answers.ts';
import {
  type AdminContext,
  type AdminRoute,
  flag,
  type Handlers,
  invalid,
  isAdmin,
  wholeNumber,
} from '../http/route.ts';
import { type Mission, MISSION_LIMITS, type MissionContents, type MissionRole } from '../model/mission.ts';
import type { MissionPage, MissionQuery } from '../store/missions.ts';
import { MissionAccess, type MissionApiOptions, type Visit } from './access.ts';
import { audience } from './announce.ts';
import { ContentHandlers } from './contents.ts';
import { MissionHandlers } from './missions.ts';
import { changeWindow, roleDemanded, uidDemanded, reportedUid } from './request.ts';
import { toMissionView, toRoleView, toSubscriptionView } from './mission-views.ts';

/** The one of a single subscription; the lists have the short one. */
const LONG_TYPE = 'com.bbn.marti.sync.model.MissionSubscription';
const TYPE = 'MissionSubscription';
const WITH_MISSION_FROM_VERSION = 3;

/** Who is subscribed to a mission, by which device and with which role. */
export class SubscriptionHandlers {
  readonly #options: MissionApiOptions;
  readonly #access: MissionAccess;
  readonly #reads;
  readonly #subscriptions;
  readonly #tokens;
  readonly #passwords;
  readonly #announce;
  readonly #hearersOf;
  readonly subscribe = async (c: AdminContext): Promise<Response> => {
    this.#access.requireRate(c);
    if ((c.req.query('topic') ?? '') !== '')
      throw new CoreFault('not implemented', 'Topics are not supported: send uid.');
    const clientUid = uidDemanded(c, 'uid');
    const visited = await this.#access.visit(c);
    const { mission, sees } = visited;
    const role = await this.#roleToSubscribe(c, visited);
    const device = { clientUid, username: c.env.caller.username };
    const subscription = await this.#subscriptions.subscribe(mission.id, device, role, this.#options.now());
    const token = await this.#tokens.ofSubscription(mission, subscription.uid);
    await this.#subscriptions.setToken(mission.id, subscription.uid, token);
    const isWithMission = Number(c.req.header('api_version')) >= WITH_MISSION_FROM_VERSION;
    const nested = isWithMission
      ? toMissionView(mission, {
          changes: await this.#reads.changes(mission, changeWindow(c, this.#options.now(), false), sees),
        })
      : undefined;
    const data = toSubscriptionView(subscription, { token, ...(nested === undefined ? {} : { mission: nested }) });
    return json({ version: '3', type: LONG_TYPE, data, nodeId: this.#options.nodeId }, 201);
  };
  /** Their own; an admin may end that of anybody. */
  readonly unsubscribe = async (c: AdminContext): Promise<Response> => {
    const clientUid = uidDemanded(c, 'uid');
    const { mission } = await this.#access.visit(c);
    const isForGood = (c.req.query('disconnectOnly') ?? '') !== '' && !flag(c, 'disconnectOnly');
    const { caller } = c.env;
    const subject = isAdmin(caller) ? { clientUid } : { clientUid, username: caller.username };
    await this.#subscriptions.unsubscribe(mission.id, subject, isForGood);
    return emptyAnswer();
  };
  readonly read = async (c: AdminContext): Promise<Response> => {
    const clientUid = reportedUid(c, 'uid');
    const { mission } = await this.#access.visitWith('MISSION_READ', c);
    const device = { clientUid, username: c.env.caller.username };
    const found = await this.#subscriptions.find(mission.id, device);
    if (found === undefined)
      throw new CoreFault('not found', `The device ${clientUid} is not subscribed to ${mission.name}.`);
    const token = found.token ?? undefined;
    return wrapped(LONG_TYPE, toSubscriptionView(found, token === undefined ? {} : { token }), this.#options.nodeId);
  };
  /**
   * Only those that are in it already get another role; nobody gives away the last owner by a slip
   * of the finger.
   */
  readonly setRole = async (c: AdminContext): Promise<Response> => {
    const role = roleDemanded(c);
    const clientUid = reportedUid(c, 'clientUid');
    const username = reportedUid(c, 'username');
    if (clientUid === '' && username === '') throw invalid('clientUid or username must say whose role it is');
    const { mission } = await this.#access.visitToWrite('MISSION_SET_ROLE', c);
    const recipient = { ...(clientUid === '' ? {} : { clientUid }), ...(username === '' ? {} : { username }) };
    const meant = await this.#subscriptions.setRole(mission.id, recipient, role);
    if (meant.length === 0) throw new CoreFault('not found', `No matching subscriber of ${mission.name}.`);
    const notices = (await this.#hearersOf(mission)).filter(({ clientUid: uid, username: person }) =>
      meant.some((each) => each.clientUid === uid && nameKey(each.username) === nameKey(person)),
    );
    this.#announce.role(mission, notices, role, '');
    return emptyAnswer();
  };
  readonly list = async (c: AdminContext): Promise<Response> => {
    const { mission } = await this.#access.visitWith('MISSION_READ', c);
    const all = await this.#subscriptions.of(mission.id);
    return wrapped(TYPE, [...new Set(all.map(({ clientUid }) => clientUid))], this.#options.nodeId);
  };
  readonly listRoles = async (c: AdminContext): Promise<Response> => {
    const { mission } = await this.#access.visitWith('MISSION_READ', c);
    return wrapped(
      TYPE,
      (await this.#subscriptions.of(mission.id)).map((each) => toSubscriptionView(each)),
      this.#options.nodeId,
    );
  };
  /** Pairs of a mission and a device. */
  readonly listAll = async (): Promise<Response> => {
    const all = await this.#subscriptions.all();
    return wrapped(
      TYPE,
      all.map(({ missionName, clientUid }) => ({ [missionName]: clientUid })),
      this.#options.nodeId,
    );
  };
  readonly ownRole = async (c: AdminContext): Promise<Response> => {
    const { role } = await this.#access.visitWith('MISSION_READ', c);
    return wrapped(
      'com.bbn.marti.sync.model.MissionRole',
      role === undefined ? undefined : toRoleView(role),
      this.#options.nodeId,
    );
  };
  /** Those of them that are on the stream. */
  readonly contacts = async (c: AdminContext): Promise<Response> => {
    const { mission } = await this.#access.visitWith('MISSION_READ', c);
    return json((await this.#hearersOf(mission)).map(contact));
  };

  constructor(options: MissionApiOptions, access: MissionAccess) {
    this.#options = options;
    this.#access = access;
    const { reads, subscriptions, tokens, passwords, announce } = options.missions;
    this.#reads = reads;
    this.#subscriptions = subscriptions;
    this.#tokens = tokens;
    this.#passwords = passwords;
    this.#announce = announce;
    this.#hearersOf = audience(this.#subscriptions, options.subscriptions);
  }

  /** Rejects with 403 for whoever has no way in. */
  async #roleToSubscribe(c: AdminContext, { mission, role }: Visit): Promise<MissionRole> {
    const password = c.req.query('password') ?? '';
    const refused = (why: string): CoreFault => new CoreFault('forbidden', `${why} (mission ${mission.name})`);
    if (password !== '') {
      if (mission.passwordHash === null) throw refused('The mission has no password');
      this.#access.requirePasswordRate(c);
      if (!(await this.#passwords.matches(password, mission.passwordHash))) throw refused('Wrong password');
      if (role === undefined && mission.inviteOnly) throw refused('Invitation required');
      return role ?? mission.defaultRole;
    }
    if (role !== undefined) return role;
    throw refused(mission.passwordHash === null ? 'Invitation required' : 'Password required');
  }
}

const LIST_TYPE = 'Mission';
const SORTS = ['name', 'creatorUid', 'createTime'] as const;

/** The lists of missions: all that may be seen, a page of them, how many there are. */
export function listHandlers(options: MissionApiOptions) {
  const { nodeId, missions } = options;

  /** `usual` is what counts when the request does not say. */
  async function queryOf(c: AdminContext, usual: boolean): Promise<MissionQuery> {
    const flagOr = (name: string): boolean => ((c.req.query(name) ?? '') === '' ? usual : flag(c, name));
    return {
      sees: await visiblePlaces(c.env.caller, options),
      tool: reportedUid(c, 'tool') || 'public',
      passwordProtected: flagOr('passwordProtected'),
      defaultRole: flagOr('defaultRole'),
      nameContains: reportedUid(c, 'nameFilter'),
      creatorContains: reportedUid(c, 'uidFilter'),
    };
  }

  /**
   * With their contents, as far as the answer may hold them, and no password guards them;
   * `messages` says what was left out.
   */
  async function answer(c: AdminContext, found: readonly Mission[], more: boolean): Promise<Response> {
    const isOpen = ({ passwordHash }: Mission): boolean => passwordHash === null || isAdmin(c.env.caller);
    const ids = found.filter(isOpen).map(({ id }) => id);
    const contents = await missions.reads.contents(ids, MISSION_LIMITS.contentsListed);
    const byMission = contentsByMission(contents);
    const messages = [
      ...(more ? [`Only the first ${MISSION_LIMITS.listed} missions are shown: ask for pages.`] : []),
      ...(contents.isCut ? ['Not all contents are shown: ask for single missions.'] : []),
    ];
    const shown = found.map((mission) => toMissionView(mission, { contents: byMission.get(mission.id) }));
    return wrapped(LIST_TYPE, shown, nodeId, messages.length === 0 ? undefined : messages);
  }

  return {
    all: async (c: AdminContext): Promise<Response> => {
      const page: MissionPage = { sort: 'name', ascending: true, offset: 0, limit: MISSION_LIMITS.listed + 1 };
      const found = await missions.reads.list(await queryOf(c, false), page);
      return answer(c, found.slice(0, MISSION_LIMITS.listed), found.length > MISSION_LIMITS.listed);
    },

    page: async (c: AdminContext): Promise<Response> => {
      const size = wholeNumber(c, 'pagesize', 10, 1);
      if (size > MISSION_LIMITS.listed) throw invalid(`pagesize must be at most ${MISSION_LIMITS.listed}`);
      const page = wholeNumber(c, 'page', 0, 0);
      const wanted = c.req.query('sort') || 'name';
      const sort = SORTS.find((each) => each.toLowerCase() === wanted.toLowerCase());
      if (sort === undefined) throw invalid(`sort must be one of ${SORTS.join(', ')}`);
      const ascending = (c.req.query('ascending') ?? '') === '' || flag(c, 'ascending');
      const offset = Math.min(page * size, Number.MAX_SAFE_INTEGER);
      const found = await missions.reads.list(await queryOf(c, true), { sort, ascending, offset, limit: size });
      return answer(c, found, false);
    },

    count: async (c: AdminContext): Promise<Response> => {
      return wrapped(LIST_TYPE, await missions.reads.count(await queryOf(c, true)), nodeId);
    },
  };
}

type OfOne = { uids: MissionContents['uids'][number][]; files: MissionContents['files'][number][] };

function contentsByMission({ uids, files }: MissionContents): Map<number, OfOne> {
  const byMission = new Map<number, OfOne>();
  const of = (id: number): OfOne => {
    const known = byMission.get(id) ?? { uids: [], files: [] };
    byMission.set(id, known);
    return known;
  };
  for (const each of uids) of(each.missionId).uids.push(each);
  for (const each of files) of(each.missionId).files.push(each);
  return byMission;
}

const MISSIONS = '/Marti/api/missions';

export function missionRoutes(options: MissionApiOptions): AdminRoute[] {
  const access = new MissionAccess(options);
  const lists = listHandlers(options);
  const missions = new MissionHandlers(options, access);
  const contents = new ContentHandlers(options, access);
  const subscriptions = new SubscriptionHandlers(options, access);

  /** Nobody can be invited here, so nobody is. */
  const noInvitations = { GET: () => wrapped('MissionInvitation', [], options.nodeId) };
  const noInvitationsHere = {
    GET: async (c: Parameters<NonNullable<Handlers['GET']>>[0]) => {
      await access.visitWith('MISSION_READ', c);
      return wrapped('MissionInvitation', [], options.nodeId);
    },
  };
  const both = (rest: string, handlers: Handlers): AdminRoute[] => [
    { path: `${MISSIONS}/guid/:guid${rest}`, handlers },
    { path: `${MISSIONS}/:name${rest}`, handlers },
  ];

  return [
    { path: '/Marti/api/pagedmissions', handlers: { GET: lists.page } },
    { path: '/Marti/api/missioncount', handlers: { GET: lists.count } },
    { path: MISSIONS, handlers: { GET: lists.all, DELETE: missions.removeByGuid } },
    { path: `${MISSIONS}/all/subscriptions`, handlers: { GET: subscriptions.listAll } },
    { path: `${MISSIONS}/all/invitations`, handlers: noInvitations },
    { path: `${MISSIONS}/invitations`, handlers: noInvitations },
    { path: `${MISSIONS}/guid/:guid`, handlers: { GET: missions.read } },
    { path: `${MISSIONS}/:name/keywords/:keyword`, handlers: { DELETE: missions.removeKeyword } },
    { path: `${MISSIONS}/:name/keywords`, handlers: { PUT: missions.setKeywords, DELETE: missions.clearKeywords } },
    ...both('/contents', { PUT: contents.add, DELETE: contents.remove }),
    ...both('/changes', { GET: contents.changes }),
    ...both('/cot', { GET: contents.events }),
    ...both('/subscription', {
      GET: subscriptions.read,
      PUT: subscriptions.subscribe,
      DELETE: subscriptions.unsubscribe,
    }),
    ...both('/subscriptions/roles', { GET: subscriptions.listRoles }),
    ...both('/subscriptions', { GET: subscriptions.list }),
    ...both('/role', { GET: subscriptions.ownRole, PUT: subscriptions.setRole }),
    ...both('/contacts', { GET: subscriptions.contacts }),
    ...both('/invitations', noInvitationsHere),
    {
      path: `${MISSIONS}/:name`,
      handlers: { GET: missions.read, PUT: missions.put, POST: missions.put, DELETE: missions.removeByName },
    },
  ];
}
