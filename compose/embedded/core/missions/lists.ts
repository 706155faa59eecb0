// The lists of missions: all that may be seen, a page of them, how many there are.

import { flag, invalid, wholeNumber } from '../admin/body.ts';
import { visiblePlaces } from '../admin/own-groups.ts';
import { isAdmin } from '../admin/roles.ts';
import type { AdminContext } from '../admin/route.ts';
import type { MissionApiOptions } from './parts.ts';
import { wrapped } from '../http/answers.ts';
import type { MissionPage, MissionQuery } from '../store/missions.ts';
import { MISSION_LIMITS } from './limits.ts';
import type { Mission, MissionContents } from './mission.ts';
import { uidSaid } from './request.ts';
import { shownMission } from './shown.ts';

const TYPE = 'Mission';
const SORTS = ['name', 'creatorUid', 'createTime'] as const;

export function listHandlers(options: MissionApiOptions) {
  const { nodeId, missions } = options;

  /** `usual` is what counts when the request does not say. */
  async function queryOf(c: AdminContext, usual: boolean): Promise<MissionQuery> {
    const flagOr = (name: string): boolean => ((c.req.query(name) ?? '') === '' ? usual : flag(c, name));
    return {
      sees: await visiblePlaces(c.env.caller, options),
      tool: uidSaid(c, 'tool') || 'public',
      passwordProtected: flagOr('passwordProtected'),
      defaultRole: flagOr('defaultRole'),
      nameContains: uidSaid(c, 'nameFilter'),
      creatorContains: uidSaid(c, 'uidFilter'),
    };
  }

  /** With their contents, as far as the answer may hold them, and no password guards them; `messages` says what was left out. */
  async function answer(c: AdminContext, found: readonly Mission[], more: boolean): Promise<Response> {
    const isOpen = ({ passwordHash }: Mission): boolean => passwordHash === null || isAdmin(c.env.caller);
    const ids = found.filter(isOpen).map(({ id }) => id);
    const contents = await missions.reads.contents(ids, MISSION_LIMITS.contentsListed);
    const byMission = contentsByMission(contents);
    const messages = [
      ...(more ? [`Only the first ${MISSION_LIMITS.listed} missions are shown: ask for pages.`] : []),
      ...(contents.isCut ? ['Not all contents are shown: ask for single missions.'] : []),
    ];
    const shown = found.map((mission) => shownMission(mission, { contents: byMission.get(mission.id) }));
    return wrapped(TYPE, shown, nodeId, messages.length === 0 ? undefined : messages);
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
      return wrapped(TYPE, await missions.reads.count(await queryOf(c, true)), nodeId);
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
