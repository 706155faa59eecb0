// Who is subscribed to a mission, by which device and with which role.

import { flag, invalid } from '../admin/body.ts';
import { nameKey } from '../../../../shared/domain/names.ts';
import { isAdmin } from '../admin/roles.ts';
import type { AdminContext } from '../admin/route.ts';
import type { MissionApiOptions } from './parts.ts';
import { contact } from '../admin/subscriptions.ts';
import { CoreFault, emptyAnswer, json, wrapped } from '../http/answers.ts';
import type { MissionAccess, Visit } from './access.ts';
import { audience } from './audience.ts';
import type { MissionRole } from './mission.ts';
import { changeWindow, roleDemanded, uidDemanded, uidSaid } from './request.ts';
import { shownMission, shownRole, shownSubscription } from './shown.ts';

/** The one of a single subscription; the lists have the short one. */
const LONG_TYPE = 'com.bbn.marti.sync.model.MissionSubscription';
const TYPE = 'MissionSubscription';
const WITH_MISSION_FROM_VERSION = 3;

export function subscriptionHandlers(options: MissionApiOptions, access: MissionAccess) {
  const { nodeId, now, missions, subscriptions: connected } = options;
  const { reads, subscriptions, tokens, passwords, announce } = missions;
  const hearersOf = audience(subscriptions, connected);

  /** Rejects with 403 for whoever has no way in. */
  async function roleToSubscribe(c: AdminContext, { mission, role }: Visit): Promise<MissionRole> {
    const password = c.req.query('password') ?? '';
    const refused = (why: string): CoreFault => new CoreFault('forbidden', `${why} (mission ${mission.name})`);
    if (password !== '') {
      if (mission.passwordHash === null) throw refused('A password was given, and the mission has none');
      access.requirePasswordRate(c);
      if (!(await passwords.matches(password, mission.passwordHash))) throw refused('The password is not that one');
      if (role === undefined && mission.inviteOnly) throw refused('One has to be invited');
      return role ?? mission.defaultRole;
    }
    if (role !== undefined) return role;
    throw refused(mission.passwordHash === null ? 'One has to be invited' : 'A password is needed');
  }

  async function subscribe(c: AdminContext): Promise<Response> {
    access.requireRate(c);
    if ((c.req.query('topic') ?? '') !== '')
      throw new CoreFault('not implemented', 'There are no topics here: say uid.');
    const clientUid = uidDemanded(c, 'uid');
    const visited = await access.visit(c);
    const { mission, sees } = visited;
    const role = await roleToSubscribe(c, visited);
    const device = { clientUid, username: c.env.caller.username };
    const subscription = await subscriptions.subscribe(mission.id, device, role, now());
    const token = await tokens.ofSubscription(mission, subscription.uid);
    await subscriptions.setToken(mission.id, subscription.uid, token);
    const isWithMission = Number(c.req.header('api_version')) >= WITH_MISSION_FROM_VERSION;
    const nested = isWithMission
      ? shownMission(mission, { changes: await reads.changes(mission, changeWindow(c, now(), false), sees) })
      : undefined;
    const data = shownSubscription(subscription, { token, ...(nested === undefined ? {} : { mission: nested }) });
    return json({ version: '3', type: LONG_TYPE, data, nodeId }, 201);
  }

  /** Their own; an admin may end that of anybody. */
  async function unsubscribe(c: AdminContext): Promise<Response> {
    const clientUid = uidDemanded(c, 'uid');
    const { mission } = await access.visit(c);
    const isForGood = (c.req.query('disconnectOnly') ?? '') !== '' && !flag(c, 'disconnectOnly');
    const { caller } = c.env;
    const whom = isAdmin(caller) ? { clientUid } : { clientUid, username: caller.username };
    await subscriptions.unsubscribe(mission.id, whom, isForGood);
    return emptyAnswer();
  }

  async function read(c: AdminContext): Promise<Response> {
    const clientUid = uidSaid(c, 'uid');
    const { mission } = await access.visitWith('MISSION_READ', c);
    const device = { clientUid, username: c.env.caller.username };
    const found = await subscriptions.find(mission.id, device);
    if (found === undefined)
      throw new CoreFault(
        'not found',
        `There is no subscription of yours to ${mission.name} by the device ${clientUid}.`,
      );
    const token = found.token ?? undefined;
    return wrapped(LONG_TYPE, shownSubscription(found, token === undefined ? {} : { token }), nodeId);
  }

  /** Only those that are in it already get another role; nobody gives away the last owner by a slip of the finger. */
  async function setRole(c: AdminContext): Promise<Response> {
    const role = roleDemanded(c);
    const clientUid = uidSaid(c, 'clientUid');
    const username = uidSaid(c, 'username');
    if (clientUid === '' && username === '') throw invalid('clientUid or username must say whose role it is');
    const { mission } = await access.visitToWrite('MISSION_SET_ROLE', c);
    const whom = { ...(clientUid === '' ? {} : { clientUid }), ...(username === '' ? {} : { username }) };
    const meant = await subscriptions.setRole(mission.id, whom, role);
    if (meant.length === 0) throw new CoreFault('not found', `Nobody like that is subscribed to ${mission.name}.`);
    const told = (await hearersOf(mission)).filter(({ clientUid: uid, username: person }) =>
      meant.some((each) => each.clientUid === uid && nameKey(each.username) === nameKey(person)),
    );
    announce.role(mission, told, role, '');
    return emptyAnswer();
  }

  return {
    subscribe,
    unsubscribe,
    read,
    setRole,

    list: async (c: AdminContext): Promise<Response> => {
      const { mission } = await access.visitWith('MISSION_READ', c);
      const all = await subscriptions.of(mission.id);
      return wrapped(TYPE, [...new Set(all.map(({ clientUid }) => clientUid))], nodeId);
    },

    listRoles: async (c: AdminContext): Promise<Response> => {
      const { mission } = await access.visitWith('MISSION_READ', c);
      return wrapped(
        TYPE,
        (await subscriptions.of(mission.id)).map((each) => shownSubscription(each)),
        nodeId,
      );
    },

    /** Pairs of a mission and a device. */
    listAll: async (): Promise<Response> => {
      const all = await subscriptions.all();
      return wrapped(
        TYPE,
        all.map(({ missionName, clientUid }) => ({ [missionName]: clientUid })),
        nodeId,
      );
    },

    ownRole: async (c: AdminContext): Promise<Response> => {
      const { role } = await access.visitWith('MISSION_READ', c);
      return wrapped('com.bbn.marti.sync.model.MissionRole', role === undefined ? undefined : shownRole(role), nodeId);
    },

    /** Those of them that are on the stream. */
    contacts: async (c: AdminContext): Promise<Response> => {
      const { mission } = await access.visitWith('MISSION_READ', c);
      return json((await hearersOf(mission)).map(contact));
    },
  };
}
