// Subscribes devices to missions, and keeps their roles.

import { nameKey } from '@holdfast/kit/names';
import { contact } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, json, wrapped } from '../http/answers.ts';
import { type AdminContext, flag, invalid, isAdmin } from '../http/route.ts';
import type { MissionRole } from '../model/mission.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { audience } from './announce.ts';
import { toMissionView, toRoleView, toSubscriptionView } from './mission-views.ts';
import { changeWindow, reportedUid, roleDemanded, uidDemanded } from './request.ts';

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
    await this.#options.missions.invitations.accept(mission.id, device.username);
    const isWithMission = Number(c.req.header('api_version')) >= WITH_MISSION_FROM_VERSION;
    const window = changeWindow(c, this.#options.now(), false);
    const nested = isWithMission
      ? toMissionView(mission, {
          changes: await this.#reads.changes(mission, window, sees),
          logs: await this.#options.missions.logs.of(mission, window),
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
  /** Those of them that are on the stream. CloudTAK takes no null for their groups here. */
  readonly contacts = async (c: AdminContext): Promise<Response> => {
    const { mission } = await this.#access.visitWith('MISSION_READ', c);
    return json((await this.#hearersOf(mission)).map((each) => ({ ...contact(each), filterGroups: [] })));
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
