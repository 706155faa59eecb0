// Repairs three defects of the postgres client 3.4.9 while it is bundled (porsager/postgres, issues 1154 and 1208; the last
// one has none): after a connection has died, a delayed write throws outside of every promise and ends the process; the timer
// of that write, cleared but not forgotten, keeps the connection from ever writing again; and the error with which the server
// ended it fails the first call on the connection after it. A release in which the places are not found stops the build, so
// that this file is looked at again.

const WRITE = 'const x = socket.write(chunk, fn)';
const GUARDED_WRITE = `if (socket === null) {
      chunk = nextWriteTimer = null
      error(Errors.connection('CONNECTION_CLOSED', options))
      return false
    }
    ${WRITE}`;
const CLEAR = 'clearImmediate(nextWriteTimer)\n';
const CLEAR_AND_FORGET = `${CLEAR}    chunk = nextWriteTimer = null\n`;
const CLOSED = 'async function closed(hadError) {\n';
const CLOSED_AND_FORGOTTEN = `${CLOSED}    errorResponse = null\n`;

/** True for the file of the client that is repaired, by its path. */
export const POSTGRES_CONNECTION = /[\\/]postgres[\\/](?:cf[\\/])?src[\\/]connection\.js$/;

/** The repaired text of that file. Throws when it is not the one that is known. */
export function repairPostgres(source: string): string {
  const cleared = replaced(source, `    ${CLEAR}`, `    ${CLEAR_AND_FORGET}`, 2);
  return replaced(replaced(cleared, WRITE, GUARDED_WRITE, 1), CLOSED, CLOSED_AND_FORGOTTEN, 1);
}

function replaced(source: string, old: string, fresh: string, times: number): string {
  const parts = source.split(old);
  if (parts.length !== times + 1) {
    throw new Error(
      `postgres has changed: "${old.trim()}" occurs ${parts.length - 1} times, not ${times}; see packages/setup/repair-postgres.ts`,
    );
  }
  return parts.join(fresh);
}
