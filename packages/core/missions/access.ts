// Decides access to missions: groups decide who sees a mission, a role what they may do, a send
// group whether they may write.

import { rateLimit } from '@holdfast/kit/rate-limit';
import { type GroupParts, groupsOf, placesNamed, sendingRows, visiblePlaces } from '../groups/own-groups.ts';
import { CoreFault, PageFault } from '../http/answers.ts';
import { type AdminContext, isAdmin } from '../http/route.ts';
import {
  CHANGE_RATE,
  may,
  MISSION_ROLES,
  type MissionPermission,
  type MissionRole,
  type MissionWithGroups,
  PASSWORD_RATE,
} from '../model/mission.ts';
import type { Subscriptions } from '../model/parts.ts';
import type { MissionEvents } from '../store/mission-events.ts';
import type { Invitee, MissionInvitations } from '../store/mission-invitations.ts';
import type { MissionLayers } from '../store/mission-layers.ts';
import type { MissionLinks } from '../store/mission-links.ts';
import type { MissionLogs } from '../store/mission-logs.ts';
import type { MissionSubscriptions } from '../store/mission-subscriptions.ts';
import type { MissionWrites } from '../store/mission-writes.ts';
import type { MissionKey, MissionReads, Places } from '../store/missions.ts';
import type { ClientEndpoints } from '../store/presence.ts';
import type { Archivable } from '../archive/archivable.ts';
import type { Announce } from './announce.ts';
import type { MissionPasswords, MissionTokens, TokenSays } from './credentials.ts';
import { missionKey } from './request.ts';

/** A mission that the caller sees, and what they are in it. */
export interface Visit {
  mission: MissionWithGroups;
  sees: Places;
  /** Undefined: only a password, a token or an invitation opens it. */
  role: MissionRole | undefined;
}

const ANONYMOUS = '__ANON__';

export class MissionAccess {
  readonly #options: MissionApiOptions;
  readonly #reads;
  readonly #subscriptions;
  readonly #invitations;
  readonly #tokens;
  readonly #isWithinRate;
  readonly #mayTry;

  constructor(options: MissionApiOptions) {
    this.#options = options;
    const { reads, subscriptions, invitations, tokens } = options.missions;
    this.#reads = reads;
    this.#subscriptions = subscriptions;
    this.#invitations = invitations;
    this.#tokens = tokens;
    this.#isWithinRate = rateLimit({ ...CHANGE_RATE, now: options.now });
    this.#mayTry = rateLimit({ ...PASSWORD_RATE, now: options.now });
  }

  /**
   * Rejects with 404 for a mission that the caller does not see, with 410 for one that was deleted.
   */
  async visit(c: AdminContext, key: MissionKey = missionKey(c)): Promise<Visit> {
    const visited = await this.visitIfSeen(c, key);
    if (visited !== undefined) return visited;
    const called = 'name' in key ? `called ${key.name}` : `with the guid ${key.guid}`;
    if (await this.#reads.wasDeleted(key)) throw new CoreFault('gone', `The mission ${called} was deleted.`);
    throw new CoreFault('not found', `Mission ${called} not found.`);
  }

  /** The same; undefined for a mission that the caller does not see. */
  async visitIfSeen(c: AdminContext, key: MissionKey): Promise<Visit | undefined> {
    const sees = await this.sees(c);
    const mission = await this.#reads.find(key, sees);
    return mission === undefined ? undefined : { mission, sees, role: await this.#roleOf(c, mission) };
  }

  /** Groups whose missions and events the caller sees. */
  sees({ env: { caller } }: AdminContext): Promise<Places> {
    return visiblePlaces(caller, this.#options);
  }

  /** The same for whoever has the permission there; with 403 for others. */
  async visitWith(permission: MissionPermission, c: AdminContext, key?: MissionKey): Promise<Visit> {
    const visited = await this.visit(c, key);
    if (may(visited.role, permission)) return visited;
    throw new CoreFault(
      'forbidden',
      `You do not have the permission ${permission} in the mission ${visited.mission.name}.`,
    );
  }

  /** Whoever may also send into a group of the mission. */
  async visitToWrite(permission: MissionPermission, c: AdminContext, key?: MissionKey): Promise<Visit> {
    this.requireRate(c);
    const visited = await this.visitWith(permission, c, key);
    const { caller } = c.env;
    if (isAdmin(caller)) return visited;
    const sends = new Set((await sendingRows(caller, this.#options)).map(({ group }) => group.bitpos));
    if (visited.mission.groups.some(({ place }) => sends.has(place))) return visited;
    throw new CoreFault('forbidden', `You may not send to any group of the mission ${visited.mission.name}.`);
  }

  /** Rejects with 429 for whoever changes too much too fast. */
  requireRate(c: AdminContext): void {
    const { caller } = c.env;
    if (isAdmin(caller) || this.#isWithinRate(caller.username)) return;
    throw new PageFault(429, 'Too many mission changes. Try again in a minute.', {
      headers: { 'retry-after': '60' },
    });
  }

  /** The same for whoever tries too many passwords, whatever for. */
  requirePasswordRate({ env: { caller } }: AdminContext): void {
    if (this.#mayTry(caller.username)) return;
    throw new PageFault(429, 'Too many passwords tried. Try again in a minute.', { headers: { 'retry-after': '60' } });
  }

  /**
   * Groups for a mission of the caller: those that were asked for, else their own. Rejects with 403
   * for those of others.
   */
  async groupsFor(c: AdminContext, requests: readonly string[] | undefined): Promise<number[]> {
    const own = await sendingRows(c.env.caller, this.#options);
    const wanted = requests ?? [ANONYMOUS];
    const isAnybody = wanted.length === 1 && wanted[0] === ANONYMOUS;
    if (isAnybody && !own.some(({ group }) => group.name === ANONYMOUS)) {
      const on = own.filter(({ active }) => active);
      if (on.length === 0)
        throw new CoreFault('forbidden', "You can't create a mission: you have no group that you may send to.");
      return ascending(on.map(({ group }) => group.bitpos));
    }
    return ascending(placesNamed(wanted, own));
  }

  /** The caller, as invitations know people. */
  async invitee({ env: { caller } }: AdminContext): Promise<Invitee> {
    const rows = await groupsOf(caller, this.#options);
    const groups = rows.filter(({ direction }) => direction === 'OUT').map(({ group }) => group.name);
    return { username: caller.username, groups };
  }

  async #lentRole({ id }: MissionWithGroups, says: TokenSays | undefined): Promise<MissionRole | undefined> {
    if (says?.kind === 'subscription') return (await this.#subscriptions.byUid(id, says.uid))?.role;
    return says?.kind === 'invitation' ? this.#invitations.roleByUid(id, says.uid) : undefined;
  }

  /**
   * The strongest of the caller's own, that of the token that came with it, and that of an
   * invitation; else what everybody has.
   */
  async #roleOf(c: AdminContext, mission: MissionWithGroups): Promise<MissionRole | undefined> {
    const { caller } = c.env;
    if (isAdmin(caller)) return 'MISSION_OWNER';
    const own = await this.#subscriptions.roleOf(mission.id, caller.username);
    const says = await this.#tokens.read(bearer(c), mission);
    const lent = await this.#lentRole(mission, says);
    const invited = own === undefined ? await this.#invitations.roleOf(mission.id, await this.invitee(c)) : undefined;
    const strongest = MISSION_ROLES.find((role) => role === own || role === lent || role === invited);
    if (strongest !== undefined) return strongest;
    const isOpen = mission.passwordHash === null && !mission.inviteOnly;
    return isOpen || (says?.kind === 'access' && !mission.inviteOnly) ? mission.defaultRole : undefined;
  }
}

/** Empty when there is none. */
export function bearer(c: AdminContext): string {
  const given = c.req.header('missionauthorization') ?? c.req.header('authorization') ?? '';
  return given.startsWith('Bearer ') ? given.slice('Bearer '.length) : '';
}

function ascending(places: readonly number[]): number[] {
  return [...new Set(places)].toSorted((a, b) => a - b);
}

export interface MissionParts {
  reads: MissionReads;
  writes: MissionWrites;
  subscriptions: MissionSubscriptions;
  invitations: MissionInvitations;
  logs: MissionLogs;
  layers: MissionLayers;
  links: MissionLinks;
  events: MissionEvents;
  tokens: MissionTokens;
  passwords: MissionPasswords;
  announce: Announce;
  /**
   * Stores events; all or none. Rejects with an AppError `unavailable` when the database is away.
   */
  submit(events: readonly Archivable[]): Promise<void>;
}

/** What the routes of missions are made from. */
export interface MissionApiOptions extends GroupParts {
  /** In every wrapped answer: `readNodeId`. */
  nodeId: string;
  missions: MissionParts;
  /** Who is on the stream, and who ever was. */
  subscriptions: Subscriptions;
  endpoints: ClientEndpoints;
  now: () => Date;
}
