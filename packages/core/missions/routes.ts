// Defines the routes of /Marti/api/missions in matching order. Most exist twice: by name and by
// guid.

import type { FilesOptions } from '../files/options.ts';
import { visiblePlaces } from '../groups/own-groups.ts';
import { wrapped } from '../http/answers.ts';
import {
  type AdminContext,
  type AdminRoute,
  flag,
  type Handlers,
  invalid,
  isAdmin,
  wholeNumber,
} from '../http/route.ts';
import { type Mission, MISSION_LIMITS, type MissionContents } from '../model/mission.ts';
import type { MissionPage, MissionQuery } from '../store/missions.ts';
import { MissionAccess, type MissionApiOptions } from './access.ts';
import { ArchiveHandler } from './archive.ts';
import { ContentHandlers } from './contents.ts';
import { InvitationHandlers } from './invitations.ts';
import { kmlHandler } from './kml.ts';
import { LayerHandlers } from './layers.ts';
import { LinkHandlers } from './links.ts';
import { LogHandlers } from './logs.ts';
import { MissionHandlers } from './missions.ts';
import { PackageHandler } from './package.ts';
import { reportedUid } from './request.ts';
import { SubscriptionHandlers } from './subscriptions.ts';
import { toMissionView } from './mission-views.ts';

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
    const attached = Map.groupBy(await missions.links.attachments(ids), ({ missionId }) => missionId);
    const messages = [
      ...(more ? [`Only the first ${MISSION_LIMITS.listed} missions are shown: ask for pages.`] : []),
      ...(contents.isCut ? ['Not all contents are shown: ask for single missions.'] : []),
    ];
    const shown = found.map((mission) =>
      toMissionView(mission, { contents: byMission.get(mission.id), attachments: attached.get(mission.id) }),
    );
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

/** In matching order: what is said of all missions before what is said of one by its name. */
export function missionRoutes(options: MissionApiOptions & FilesOptions): AdminRoute[] {
  const access = new MissionAccess(options);
  const lists = listHandlers(options);
  const missions = new MissionHandlers(options, access);
  const contents = new ContentHandlers(options, access);
  const subscriptions = new SubscriptionHandlers(options, access);
  const invitations = new InvitationHandlers(options, access);
  const logs = new LogHandlers(options, access);
  const password = { PUT: missions.setPassword, DELETE: missions.clearPassword };

  return [
    { path: '/Marti/api/pagedmissions', handlers: { GET: lists.page } },
    { path: '/Marti/api/missioncount', handlers: { GET: lists.count } },
    { path: MISSIONS, handlers: { GET: lists.all, DELETE: missions.removeByGuid } },
    { path: `${MISSIONS}/all/subscriptions`, handlers: { GET: subscriptions.listAll } },
    { path: `${MISSIONS}/all/invitations`, handlers: { GET: invitations.ownNames } },
    { path: `${MISSIONS}/invitations`, handlers: { GET: invitations.own } },
    { path: `${MISSIONS}/logs/entries`, handlers: { POST: logs.add, PUT: logs.change } },
    { path: `${MISSIONS}/logs/entries/:id`, handlers: { GET: logs.read, DELETE: logs.remove } },
    { path: `${MISSIONS}/guid/:guid`, handlers: { GET: missions.read } },
    { path: `${MISSIONS}/:name/keywords/:keyword`, handlers: { DELETE: missions.removeKeyword } },
    { path: `${MISSIONS}/:name/keywords`, handlers: { PUT: missions.setKeywords, DELETE: missions.clearKeywords } },
    ...contentRoutes(options, access, contents),
    ...both('/subscription', {
      GET: subscriptions.read,
      PUT: subscriptions.subscribe,
      DELETE: subscriptions.unsubscribe,
    }),
    ...both('/subscriptions/roles', { GET: subscriptions.listRoles }),
    ...both('/subscriptions', { GET: subscriptions.list }),
    ...both('/role', { GET: subscriptions.ownRole, PUT: subscriptions.setRole }),
    ...both('/contacts', { GET: subscriptions.contacts }),
    ...both('/token', { GET: missions.accessToken }),
    ...both('/password', password),
    ...both('/expiration', { PUT: missions.setExpiration }),
    ...both('/invitations', { GET: invitations.list }),
    ...both('/invite/:type/:invitee', { PUT: invitations.invite, DELETE: invitations.revoke }),
    ...both('/invite', { POST: invitations.inviteMany }),
    ...both('/log', { GET: logs.list }),
    ...linkRoutes(options, access),
    {
      path: `${MISSIONS}/:name`,
      handlers: { GET: missions.read, PUT: missions.put, POST: missions.put, DELETE: missions.removeByName },
    },
  ];
}

function both(rest: string, handlers: Handlers): AdminRoute[] {
  return [
    { path: `${MISSIONS}/guid/:guid${rest}`, handlers },
    { path: `${MISSIONS}/:name${rest}`, handlers },
  ];
}

/** What is in a mission: contents, layers, packages. */
function contentRoutes(
  options: MissionApiOptions & FilesOptions,
  access: MissionAccess,
  contents: ContentHandlers,
): AdminRoute[] {
  const layers = new LayerHandlers(options, access, contents);
  const packages = new PackageHandler(options, access, contents);
  return [
    ...both('/contents/missionpackage', { PUT: packages.unpack }),
    ...both('/contents', { PUT: contents.add, DELETE: contents.remove }),
    ...both('/changes', { GET: contents.changes }),
    ...both('/cot', { GET: contents.events }),
    ...both('/kml', { GET: kmlHandler(options, access) }),
    ...both('/archive', { GET: new ArchiveHandler(options, access).pack }),
    ...both('/layers/parent', { PUT: layers.setParent }),
    ...both('/layers/:layer/name', { PUT: layers.rename }),
    ...both('/layers/:layer/position', { PUT: layers.setPosition }),
    ...both('/layers/:layer', { GET: layers.read }),
    ...both('/layers', { GET: layers.list, PUT: layers.add, DELETE: layers.remove }),
  ];
}

/** What hangs on a mission. */
function linkRoutes(options: MissionApiOptions, access: MissionAccess): AdminRoute[] {
  const links = new LinkHandlers(options, access);
  return [
    { path: `${MISSIONS}/guid/:guid/parent/guid/:parentGuid`, handlers: { PUT: links.setParent } },
    { path: `${MISSIONS}/:name/parent/:parent`, handlers: { PUT: links.setParent } },
    ...both('/parent', { GET: links.parent, DELETE: links.clearParent }),
    ...both('/children', { GET: links.children }),
    ...both('/feed/:uid', { DELETE: links.removeFeed }),
    ...both('/feed', { POST: links.addFeed }),
    ...both('/externaldata/:uid/change', { POST: links.reportExternalChange }),
    ...both('/externaldata/:uid', { DELETE: links.removeExternalData }),
    ...both('/externaldata', { POST: links.setExternalData }),
    ...both('/maplayers/:uid', { DELETE: links.removeMapLayer }),
    ...both('/maplayers', { POST: links.setMapLayer, PUT: links.setMapLayer }),
  ];
}
