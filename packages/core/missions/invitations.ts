// Invites people to missions: by a device, a callsign, a name, a group or a team. An invitation is
// for people: whoever later shows the uid or the callsign of another device is not invited by it.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { nameKey } from '@holdfast/kit/names';
import { placesNamed, sendingRows } from '../groups/own-groups.ts';
import { CoreFault, emptyAnswer, wrapped } from '../http/answers.ts';
import { type AdminContext, invalid, jsonAs, readText } from '../http/route.ts';
import {
  INVITATION_TYPES,
  type InvitationType,
  may,
  MISSION_LIMITS,
  MISSION_ROLES,
  type MissionInvitation,
  type MissionRole,
  type MissionWithGroups,
  PERMISSIONS,
} from '../model/mission.ts';
import type { Subscription } from '../model/parts.ts';
import type { StreamDevice } from '../model/stream.ts';
import type { MissionAccess, MissionApiOptions, Visit } from './access.ts';
import { toInvitationView } from './mission-views.ts';
import { label, reportedUid, roleDemanded } from './request.ts';

const TYPE = 'MissionInvitation';
/** From this version on invitations come as JSON, before as parameters `contacts`. */
const JSON_FROM_VERSION = 3;

const role = z.enum(MISSION_ROLES);
const Requested = z
  .array(
    z.object({
      type: z.enum(INVITATION_TYPES),
      invitee: label(MISSION_LIMITS.uid).min(1),
      role: z
        .union([role, z.object({ type: role }).transform(({ type }) => type)])
        .nullish()
        .transform((value) => value ?? undefined),
    }),
  )
  .min(1)
  .max(MISSION_LIMITS.invited);

interface Wanted {
  type: InvitationType;
  invitee: string;
  role: MissionRole | undefined;
}

/** Who is meant, and their devices that are on the stream. */
interface Meant {
  usernames: readonly string[];
  devices: readonly StreamDevice[];
}

export class InvitationHandlers {
  readonly #options: MissionApiOptions;
  readonly #access: MissionAccess;
  readonly #invitations;

  /** Those of the caller, with their tokens; of a device only when it is the one that asks. */
  readonly own = async (c: AdminContext): Promise<Response> => {
    return wrapped(TYPE, (await this.#ofCaller(c)).map(toInvitationView), this.#options.nodeId);
  };

  readonly ownNames = async (c: AdminContext): Promise<Response> => {
    const names = (await this.#ofCaller(c)).map(({ missionName }) => missionName);
    return wrapped(TYPE, [...new Set(names)], this.#options.nodeId);
  };

  /** A token lets its bearer in: only who gives roles sees those of others. */
  readonly list = async (c: AdminContext): Promise<Response> => {
    const { mission, role: own } = await this.#access.visitWith('MISSION_READ', c);
    const views = (await this.#invitations.of(mission.id)).map(toInvitationView);
    const isShown = may(own, 'MISSION_SET_ROLE');
    return wrapped(TYPE, isShown ? views : views.map(({ token: _token, ...rest }) => rest), this.#options.nodeId);
  };

  readonly invite = async (c: AdminContext): Promise<Response> => {
    const wanted = { ...inviteeOf(c), role: (c.req.query('role') ?? '') === '' ? undefined : roleDemanded(c) };
    return this.#inviteAll(c, [wanted]);
  };

  readonly inviteMany = async (c: AdminContext): Promise<Response> => {
    const body = await readText(c);
    if (Number(c.req.header('api_version')) >= JSON_FROM_VERSION) return this.#inviteAll(c, jsonAs(Requested, body));
    const contacts = [...(c.req.queries('contacts') ?? []), ...formContacts(c, body)];
    const uids = [...new Set(contacts.flatMap((each) => each.split(',')).filter((each) => each !== ''))];
    if (uids.length === 0) throw invalid('contacts must hold at least one uid');
    if (uids.length > MISSION_LIMITS.invited)
      throw invalid(`at most ${MISSION_LIMITS.invited} contacts can be invited at once`);
    for (const uid of uids) requireLabel('contacts', uid);
    return this.#inviteAll(
      c,
      uids.map((invitee) => ({ type: 'clientUid', invitee, role: undefined })),
    );
  };

  /** Whoever has come by it already stays. */
  readonly revoke = async (c: AdminContext): Promise<Response> => {
    const { type, invitee } = inviteeOf(c);
    const { mission } = await this.#access.visitToWrite('MISSION_WRITE', c);
    await this.#invitations.remove(mission.id, type, invitee);
    return emptyAnswer();
  };

  constructor(options: MissionApiOptions, access: MissionAccess) {
    this.#options = options;
    this.#access = access;
    this.#invitations = options.missions.invitations;
  }

  async #ofCaller(c: AdminContext): Promise<MissionInvitation[]> {
    const clientUid = reportedUid(c, 'clientUid');
    const sees = await this.#access.sees(c);
    const found = await this.#invitations.to(await this.#access.invitee(c), sees);
    return found.filter(({ type, invitee }) => type !== 'clientUid' || clientUid === '' || invitee === clientUid);
  }

  async #inviteAll(c: AdminContext, wanted: readonly Wanted[]): Promise<Response> {
    const creatorUid = reportedUid(c, 'creatorUid');
    const visited = await this.#access.visitToWrite('MISSION_WRITE', c);
    const { mission, role: own } = visited;
    const { tokens, announce } = this.#options.missions;
    const made = [];
    for (const { type, invitee, role: given } of wanted) {
      const role = given ?? mission.defaultRole;
      if (!PERMISSIONS[role].every((permission) => may(own, permission)))
        throw new CoreFault('forbidden', `You may not invite as ${role}: that is more than you may do yourself.`);
      const meant = await this.#meant(c, visited, type, invitee);
      const uid = randomUUID();
      const token = await tokens.ofInvitation(mission, uid);
      made.push({ uid, type, invitee, creatorUid, token, role, ...meant });
    }
    await this.#invitations.add(mission.id, made, this.#options.now());
    for (const { devices, token, role } of made) announce.invited(mission, devices, { token, role }, creatorUid);
    return emptyAnswer();
  }

  /**
   * Rejects with 404 for whom nobody knows, with 403 for a group that the caller may not send to.
   */
  async #meant(c: AdminContext, { mission, sees }: Visit, type: InvitationType, invitee: string): Promise<Meant> {
    const connected = this.#options.subscriptions.list().filter((device) => hears(device, mission));
    if (type === 'userName') {
      if ((await this.#options.people.find(invitee)) === undefined)
        throw new CoreFault('not found', `There is no person named ${invitee}.`);
      return { usernames: [invitee], devices: connected.filter((each) => nameKey(each.username) === nameKey(invitee)) };
    }
    if (type === 'group') {
      placesNamed([invitee], await sendingRows(c.env.caller, this.#options));
      return { usernames: [], devices: connected.filter((device) => receives(device, invitee)) };
    }
    const member = type === 'clientUid' ? 'clientUid' : type;
    const devices = connected.filter((each) => each[member] === invitee);
    const usernames = new Set(devices.map(({ username }) => username));
    if (usernames.size === 0 && type !== 'team') {
      const query = { groups: sees, since: undefined, connectedOnly: false, newestOnly: true };
      const known = await this.#options.endpoints.list(query);
      for (const { uid, callsign, username } of known)
        if ((type === 'clientUid' ? uid : callsign) === invitee && username !== null) usernames.add(username);
    }
    if (usernames.size > 0) return { usernames: [...usernames], devices };
    throw new CoreFault(
      'not found',
      `No device with the ${type} ${invitee} is known in the groups of ${mission.name}. Invite its user by userName.`,
    );
  }
}

function receives({ groups }: Subscription, name: string): boolean {
  return groups.some((group) => group.direction === 'OUT' && group.name === name);
}

function hears(device: Subscription, { groups }: MissionWithGroups): boolean {
  return groups.some(({ name }) => receives(device, name));
}

function inviteeOf(c: AdminContext): Pick<Wanted, 'type' | 'invitee'> {
  const type = z.enum(INVITATION_TYPES).safeParse(c.req.param('type'));
  if (!type.success) throw invalid(`the type must be one of ${INVITATION_TYPES.join(', ')}`);
  return { type: type.data, invitee: requireLabel('the invitee', c.req.param('invitee') ?? '') };
}

function requireLabel(name: string, text: string): string {
  if (label(MISSION_LIMITS.uid).min(1).safeParse(text).success) return text;
  throw invalid(`${name} must have 1 to ${MISSION_LIMITS.uid} printable characters`);
}

function formContacts(c: AdminContext, body: string): string[] {
  const type = c.req.header('content-type') ?? '';
  return type.startsWith('application/x-www-form-urlencoded') ? new URLSearchParams(body).getAll('contacts') : [];
}
