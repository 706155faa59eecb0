// Reads and writes `mission_subscription`: subscribed devices and roles. A row without a token
// belongs to a device that left and may return with its role.

import { randomUUID } from 'node:crypto';
import type postgres from 'postgres';
import { CoreFault } from '../http/answers.ts';
import { MISSION_LIMITS, type MissionRole, type MissionSubscription } from '../model/mission.ts';
import type { RunSql } from './certificates.ts';
import { lockedMission, roleId } from './mission-writes.ts';

export interface Device {
  clientUid: string;
  username: string;
}

/** Rejects with an AppError `unavailable` when the database is away. */
export interface MissionSubscriptions {
  /** Those that are subscribed, and with `left` those that have left too; by clientUid. */
  of(missionId: number, left?: 'left too'): Promise<MissionSubscription[]>;
  /** Every pair of mission and device, of those that are subscribed: at most 10,000. */
  all(): Promise<{ missionName: string; clientUid: string }[]>;
  find(missionId: number, device: Device): Promise<MissionSubscription | undefined>;
  /** By the name of its row, which a token holds. */
  byUid(missionId: number, uid: string): Promise<MissionSubscription | undefined>;
  /** The strongest role that this person has in the mission by any of their devices. */
  roleOf(missionId: number, username: string): Promise<MissionRole | undefined>;
  /**
   * Whoever was subscribed before keeps the role. Rejects with a CoreFault `conflict` for too many
   * devices of one person.
   */
  subscribe(missionId: number, device: Device, role: MissionRole, now: Date): Promise<MissionSubscription>;
  setToken(missionId: number, uid: string, token: string): Promise<void>;
  /** `forget` takes the role away too. */
  unsubscribe(missionId: number, subject: Pick<Device, 'clientUid'> & Partial<Device>, forget: boolean): Promise<void>;
  /**
   * Whose role it is now. Rejects with a CoreFault `conflict` when that would take away the last
   * owner.
   */
  setRole(missionId: number, recipient: Partial<Device>, role: MissionRole): Promise<Device[]>;
}

const MAX_LISTED = 10_000;

export class StoredMissionSubscriptions implements MissionSubscriptions {
  readonly #run: RunSql;
  readonly #changed: () => void;

  constructor(run: RunSql, changed: () => void) {
    this.#run = run;
    this.#changed = changed;
  }

  of(missionId: number, left?: 'left too'): Promise<MissionSubscription[]> {
    return this.#run(
      (sql) => sql<MissionSubscription[]>`
          SELECT ${columns(sql)} WHERE s.mission_id = ${missionId} AND ${left === undefined ? sql`s.token IS NOT NULL` : sql`true`}
          ORDER BY s.client_uid COLLATE "C", s.id LIMIT ${MAX_LISTED}`,
    );
  }

  all(): Promise<{ missionName: string; clientUid: string }[]> {
    return this.#run(
      (sql) => sql<{ missionName: string; clientUid: string }[]>`
          SELECT m.name AS "missionName", s.client_uid AS "clientUid"
          FROM mission_subscription s JOIN mission m ON m.id = s.mission_id WHERE s.token IS NOT NULL
          ORDER BY s.mission_id, s.id LIMIT ${MAX_LISTED}`,
    );
  }

  find(missionId: number, { clientUid, username }: Device): Promise<MissionSubscription | undefined> {
    return this.#run(async (sql) => {
      const [row] = await sql<MissionSubscription[]>`
          SELECT ${columns(sql)} WHERE s.mission_id = ${missionId} AND s.client_uid = ${clientUid}
            AND lower(s.username) = lower(${username}) LIMIT 1`;
      return row;
    });
  }

  byUid(missionId: number, uid: string): Promise<MissionSubscription | undefined> {
    return this.#run(async (sql) => {
      const [row] = await sql<MissionSubscription[]>`
          SELECT ${columns(sql)} WHERE s.mission_id = ${missionId} AND s.uid = ${uid} LIMIT 1`;
      return row;
    });
  }

  roleOf(missionId: number, username: string): Promise<MissionRole | undefined> {
    return this.#run(async (sql) => {
      const [row] = await sql<{ role: MissionRole }[]>`
          SELECT r.role FROM mission_subscription s JOIN role r ON r.id = s.role_id
          WHERE s.mission_id = ${missionId} AND lower(s.username) = lower(${username}) ORDER BY s.role_id LIMIT 1`;
      return row?.role;
    });
  }

  async subscribe(
    missionId: number,
    { clientUid, username }: Device,
    role: MissionRole,
    now: Date,
  ): Promise<MissionSubscription> {
    const subscribed = await this.#run((sql) =>
      sql.begin(async (tx) => {
        const [mission] = await tx`SELECT FROM mission WHERE id = ${missionId} FOR SHARE`;
        if (mission === undefined) throw new CoreFault('not found', 'The mission was deleted in the meantime.');
        const [there] = await tx<MissionSubscription[]>`
            SELECT ${columns(tx)} WHERE s.mission_id = ${missionId} AND s.client_uid = ${clientUid}
              AND lower(s.username) = lower(${username}) LIMIT 1`;
        if (there !== undefined) return there;
        const [counted] = await tx<{ count: number }[]>`
            SELECT count(*)::float8 AS count FROM mission_subscription
            WHERE mission_id = ${missionId} AND lower(username) = lower(${username})`;
        if ((counted?.count ?? 0) >= MISSION_LIMITS.devices)
          throw new CoreFault(
            'conflict',
            `At most ${MISSION_LIMITS.devices} devices of one person can subscribe to a mission. Unsubscribe others with disconnectOnly=false.`,
          );
        const uid = randomUUID();
        await tx`
            INSERT INTO mission_subscription (mission_id, client_uid, username, create_time, uid, role_id)
            VALUES (${missionId}, ${clientUid}, ${username}, ${now}, ${uid}, ${roleId(role)})
            ON CONFLICT (mission_id, client_uid, username) DO NOTHING`;
        const [row] = await tx<MissionSubscription[]>`
            SELECT ${columns(tx)} WHERE s.mission_id = ${missionId} AND s.client_uid = ${clientUid} AND s.username = ${username}`;
        if (row === undefined) throw new Error('the database answered without the row');
        return row;
      }),
    );
    this.#changed();
    return subscribed;
  }

  async setToken(missionId: number, uid: string, token: string): Promise<void> {
    await this.#run(
      (sql) => sql`UPDATE mission_subscription SET token = ${token} WHERE mission_id = ${missionId} AND uid = ${uid}`,
    );
    this.#changed();
  }

  async unsubscribe(
    missionId: number,
    subject: Pick<Device, 'clientUid'> & Partial<Device>,
    forget: boolean,
  ): Promise<void> {
    await this.#run((sql) =>
      forget
        ? sql`DELETE FROM mission_subscription WHERE ${theirs(sql, missionId, subject)}`
        : sql`UPDATE mission_subscription SET token = NULL WHERE ${theirs(sql, missionId, subject)}`,
    );
    this.#changed();
  }

  async setRole(missionId: number, recipient: Partial<Device>, role: MissionRole): Promise<Device[]> {
    const meant = await lockedMission(this.#run, missionId, async (tx) => {
      const isTheirs = theirs(tx, missionId, recipient);
      const [owners] = await tx<{ meant: number; others: number }[]>`
          SELECT count(*) FILTER (WHERE ${isTheirs})::float8 AS meant,
            count(*) FILTER (WHERE (${isTheirs}) IS NOT TRUE)::float8 AS others
          FROM mission_subscription WHERE mission_id = ${missionId} AND role_id = ${roleId('MISSION_OWNER')}`;
      if (role !== 'MISSION_OWNER' && owners?.others === 0 && owners.meant > 0)
        throw new CoreFault('conflict', 'The mission would have no owner. Make another subscriber owner first.');
      return tx<Device[]>`
          UPDATE mission_subscription SET role_id = ${roleId(role)} WHERE ${isTheirs}
          RETURNING client_uid AS "clientUid", coalesce(username, '') AS username`;
    });
    this.#changed();
    return meant;
  }
}

/** The rows of a device, of a person, or of a person's device. */
function theirs(sql: postgres.ISql, missionId: number, { clientUid, username }: Partial<Device>): postgres.Fragment {
  return sql`mission_id = ${missionId}
    AND ${clientUid === undefined ? sql`true` : sql`client_uid = ${clientUid}`}
    AND ${username === undefined ? sql`true` : sql`lower(username) = lower(${username})`}`;
}

function columns(sql: postgres.ISql): postgres.Fragment {
  return sql`s.uid, s.client_uid AS "clientUid", coalesce(s.username, '') AS username, s.create_time AS "createTime",
    coalesce(r.role, 'MISSION_SUBSCRIBER') AS role, s.token
    FROM mission_subscription s LEFT JOIN role r ON r.id = s.role_id`;
}
