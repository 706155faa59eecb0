// /Marti/api/missions: every path, in the order in which they are looked for. Most have two: by name and by guid.

import { wrapped } from '../http/answers.ts';
import type { AdminRoute, Handlers } from '../admin/route.ts';
import type { MissionApiOptions } from './parts.ts';
import { missionAccess } from './access.ts';
import { contentHandlers } from './contents.ts';
import { listHandlers } from './lists.ts';
import { missionHandlers } from './missions.ts';
import { subscriptionHandlers } from './subscriptions.ts';

const MISSIONS = '/Marti/api/missions';

export function missionRoutes(options: MissionApiOptions): AdminRoute[] {
  const access = missionAccess(options);
  const lists = listHandlers(options);
  const missions = missionHandlers(options, access);
  const contents = contentHandlers(options, access);
  const subscriptions = subscriptionHandlers(options, access);

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
