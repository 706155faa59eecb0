// Reads and writes `mission_invitation`: who may come into a mission, and with which role.

import type postgres from 'postgres';
import { CoreFault } from '../http/answers.ts';
import {
  type InvitationType,
  MISSION_LIMITS,
  MISSION_ROLES,
  type MissionInvitation,
  type MissionRole,
} from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import { lockedMission, roleId } from './mission-writes.ts';
import type { Places } from './missions.ts';
import { textsOf } from './resources.ts';
import { visible } from './tables.ts';

/** A person, with the groups that they receive from. */
export interface Invitee {
  username: string;
  groups: readonly string[];
}

export interface NewInvitation {
  uid: string;
  type: InvitationType;
  invitee: string;
  /** Whom it lets in; none for a group. */
  usernames: readonly string[];
  creatorUid: string;
  token: string;
  role: MissionRole;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface MissionInvitations {
  /**
   * All or none; whoever is invited again has the new role. Rejects with a CoreFault: `not found`
   * for a mission that has gone meanwhile, `conflict` beyond the limit.
   */
  add(missionId: number, invitations: readonly NewInvitation[], now: Date): Promise<void>;
  /** Nothing happens when there is no such invitation. */
  remove(missionId: number, type: InvitationType, invitee: string): Promise<void>;
  of(missionId: number): Promise<MissionInvitation[]>;
  /** To missions that may be seen, the newest first; at most as many as an answer may list. */
  to(who: Invitee, sees: Places): Promise<MissionInvitation[]>;
  /** The strongest that this person is invited with. */
  roleOf(missionId: number, who: Invitee): Promise<MissionRole | undefined>;
  /** By the name of its row, which a token holds. */
  roleByUid(missionId: number, uid: string): Promise<MissionRole | undefined>;
  /** Ends the invitations of this person alone: they have come. */
  accept(missionId: number, username: string): Promise<void>;
}

export function missionInvitations(run: RunSql): MissionInvitations {
  return {
    add: (missionId, invitations, now) => lockedMission(run, missionId, (tx) => added(tx, missionId, invitations, now)),

    async remove(missionId, type, invitee) {
      await run(
        (sql) => sql`
          DELETE FROM mission_invitation
          WHERE mission_id = ${missionId} AND type = ${type} AND lower(invitee) = lower(${invitee})`,
      );
    },

    of: (missionId) =>
      run(
        (sql) => sql<MissionInvitation[]>`
          SELECT ${columns(sql)} WHERE i.mission_id = ${missionId} ORDER BY i.id LIMIT ${MISSION_LIMITS.invitations}`,
      ),

    to: (who, sees) =>
      run(
        (sql) => sql<MissionInvitation[]>`
          SELECT ${columns(sql)} WHERE ${isFor(sql, who)} AND ${visible(sql, sees, sql`m.groups`)}
          ORDER BY i.id DESC LIMIT ${MISSION_LIMITS.listed}`,
      ),

    roleOf: (missionId, who) =>
      run(async (sql) => {
        const [row] = await sql<{ roleId: number }[]>`
          SELECT i.role_id AS "roleId" FROM mission_invitation i
          WHERE i.mission_id = ${missionId} AND ${isFor(sql, who)} ORDER BY i.role_id LIMIT 1`;
        return row === undefined ? undefined : MISSION_ROLES[row.roleId];
      }),

    roleByUid: (missionId, uid) =>
      run(async (sql) => {
        const [row] = await sql<{ roleId: number }[]>`
          SELECT role_id AS "roleId" FROM mission_invitation WHERE mission_id = ${missionId} AND uid = ${uid} LIMIT 1`;
        return row === undefined ? undefined : MISSION_ROLES[row.roleId];
      }),

    async accept(missionId, username) {
      await run(
        (sql) => sql`
          DELETE FROM mission_invitation
          WHERE mission_id = ${missionId} AND usernames = ARRAY[lower(${username}::text)]::varchar[] AND type <> 'team'`,
      );
    },
  };
}

async function added(
  tx: postgres.TransactionSql,
  missionId: number,
  invitations: readonly NewInvitation[],
  now: Date,
): Promise<void> {
  for (const { uid, type, invitee, usernames, creatorUid, token, role } of invitations)
    await tx`
      INSERT INTO mission_invitation (mission_id, uid, type, invitee, usernames, creator_uid, create_time, token, role_id)
      VALUES (${missionId}, ${uid}, ${type}, ${invitee},
        ARRAY(SELECT DISTINCT lower(u) FROM unnest(${textsOf(tx, usernames)}) u), ${creatorUid}, ${now}, ${token}, ${roleId(role)})
      ON CONFLICT (mission_id, type, lower(invitee)) DO UPDATE SET uid = excluded.uid, usernames = excluded.usernames,
        creator_uid = excluded.creator_uid, create_time = excluded.create_time, token = excluded.token, role_id = excluded.role_id`;
  const [counted] = await tx<{ count: number }[]>`
    SELECT count(*)::float8 AS count FROM mission_invitation WHERE mission_id = ${missionId}`;
  if ((counted?.count ?? 0) > MISSION_LIMITS.invitations)
    throw new CoreFault(
      'conflict',
      `A mission can have at most ${MISSION_LIMITS.invitations} open invitations. Revoke old ones.`,
    );
}

function isFor(sql: postgres.ISql, { username, groups }: Invitee): postgres.Fragment {
  return sql`(i.usernames @> ARRAY[lower(${username}::text)]::varchar[]
    OR (i.type = 'group' AND lower(i.invitee) = ANY (${textsOf(
      sql,
      groups.map((name) => name.toLowerCase()),
    )})))`;
}

function columns(sql: postgres.ISql): postgres.Fragment {
  return sql`i.uid, m.name AS "missionName", m.guid::text AS "missionGuid", i.type, i.invitee, i.creator_uid AS "creatorUid",
    i.create_time AS "createTime", i.token, r.role
    FROM mission_invitation i JOIN mission m ON m.id = i.mission_id JOIN role r ON r.id = i.role_id`;
}
