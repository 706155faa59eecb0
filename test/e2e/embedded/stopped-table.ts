// A table that VACUUM FULL stays in the middle of for as long as a test wants.

import postgres from 'postgres';
import { query } from './embedded.ts';

const STOPPER = 7_311_042;
const FULL_OF_STOPPED = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'VACUUM %stopped%' AND state = 'active' AND wait_event = 'PgSleep'`;

export interface Held {
  letGo: () => Promise<void>;
}

/** A client that has done that in a transaction which goes on. */
export async function inTransaction(database: string, text: string): Promise<Held> {
  const sql = postgres(database, { max: 1, onnotice: () => undefined, connection: { application_name: 'report' } });
  await sql.unsafe(`BEGIN; ${text}`);
  return {
    letGo: async () => {
      await sql.unsafe('COMMIT');
      await sql.end({ timeout: 2 });
    },
  };
}

/** It makes its index anew, row by row, and waits at each while somebody holds the lock. */
export async function addStoppedTable(database: string): Promise<void> {
  await query(
    database,
    `CREATE FUNCTION stopped_by(value integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
     BEGIN
       LOOP
         EXIT WHEN pg_catalog.pg_try_advisory_xact_lock_shared(${STOPPER});
         PERFORM pg_catalog.pg_sleep(0.05);
       END LOOP;
       RETURN value;
     END $$;
     CREATE TABLE stopped (id integer);
     INSERT INTO stopped SELECT generate_series(1, 1000);
     CREATE INDEX stopped_index ON stopped (stopped_by(id));
     DELETE FROM stopped WHERE id > 100;`,
  );
}

export const stopped = (database: string): Promise<Held> =>
  inTransaction(database, `SELECT pg_advisory_xact_lock(${STOPPER})`);

export const isFullInTheMiddle = async (database: string): Promise<boolean> =>
  (await query(database, FULL_OF_STOPPED)).length > 0;
