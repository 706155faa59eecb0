// Reads and writes `error_logs`: what devices send of their own failures, a bounded number.

import type { RunSql } from './certificates.ts';

export interface ErrorLog {
  id: number;
  /** As the device names itself. */
  uid: string;
  callsign: string;
  /** Whose certificate it came by. */
  username: string;
  platform: string;
  majorVersion: string;
  minorVersion: string;
  filename: string;
  bytes: number;
  time: Date;
}

export type NewErrorLog = Omit<ErrorLog, 'id' | 'bytes'> & { contents: Uint8Array };

export const ERROR_LOG_LIMITS = { ofOne: 20, all: 500, bytes: 256 * 1024 * 1024 } as const;

/** Rejects with an AppError `unavailable` when the database is away. */
export interface ErrorLogStore {
  /** Beyond a limit the oldest go: of the person first, then of all. */
  add(log: NewErrorLog): Promise<void>;
  /** Newest first. */
  list(): Promise<ErrorLog[]>;
  contents(id: number): Promise<{ filename: string; contents: Uint8Array<ArrayBuffer> } | undefined>;
  /** False when there is none. */
  remove(id: number): Promise<boolean>;
}

export function errorLogStore(run: RunSql): ErrorLogStore {
  return {
    add: ({ uid, callsign, username, platform, majorVersion, minorVersion, filename, time, contents }) =>
      run((sql) =>
        sql.begin(async (tx) => {
          await tx`LOCK TABLE error_logs IN SHARE ROW EXCLUSIVE MODE`;
          await tx`
            INSERT INTO error_logs (uid, callsign, username, platform, major_version, minor_version, filename, contents, "time")
            VALUES (${uid}, ${callsign}, ${username}, ${platform}, ${majorVersion}, ${minorVersion}, ${filename},
              ${Buffer.from(contents)}, ${time})`;
          const { ofOne, all, bytes } = ERROR_LOG_LIMITS;
          await tx`
            DELETE FROM error_logs WHERE id IN (
              SELECT id FROM error_logs WHERE username = ${username} ORDER BY id DESC OFFSET ${ofOne})`;
          await tx`
            DELETE FROM error_logs WHERE id IN (
              SELECT id FROM (
                SELECT id, row_number() OVER newest AS number, sum(octet_length(contents)) OVER newest AS bytes
                FROM error_logs WINDOW newest AS (ORDER BY id DESC)
              ) counted WHERE number > ${all} OR counted.bytes > ${bytes})`;
        }),
      ),

    list: () =>
      run(
        (sql) => sql<ErrorLog[]>`
          SELECT id, uid, callsign, username, platform, major_version AS "majorVersion", minor_version AS "minorVersion",
            filename, octet_length(contents) AS bytes, "time" FROM error_logs ORDER BY id DESC`,
      ),

    contents: (id) =>
      run(async (sql) => {
        const [row] = await sql<{ filename: string; contents: Uint8Array<ArrayBuffer> }[]>`
          SELECT filename, contents FROM error_logs WHERE id = ${id}`;
        return row;
      }),

    remove: (id) => run(async (sql) => (await sql`DELETE FROM error_logs WHERE id = ${id}`).count === 1),
  };
}
