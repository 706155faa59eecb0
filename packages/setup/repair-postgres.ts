// Patches four bugs of the postgres client 3.4.9 in the bundle (porsager/postgres issues 1154,
// 1208; the others have none).
// 1. After a connection died, a delayed write throws outside of every promise and ends the process.
// 2. The timer of that write is cleared but not reset, so the connection never writes again.
// 3. The error that ended a connection also fails the first call on the next connection.
// 4. A COPY TO that ends while its reader is behind leaves the socket paused: the next answer is
// never read.
// The build fails if a new release of the client lacks the patched code. Then review this file.

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

const COPY_DONE = 'stream && stream.push(null)\n';
const COPY_DONE_AND_RESUMED = 'stream && (stream.push(null), socket && socket.resume())\n';

/** Matches the path of the patched file. */
export const POSTGRES_CONNECTION = /[\\/]postgres[\\/](?:cf[\\/])?src[\\/]connection\.js$/;

/** The patched text of that file. Throws if it isn't the known one. */
export function repairPostgres(source: string): string {
  const cleared = replaced(source, `    ${CLEAR}`, `    ${CLEAR_AND_FORGET}`, 2);
  const guarded = replaced(replaced(cleared, WRITE, GUARDED_WRITE, 1), CLOSED, CLOSED_AND_FORGOTTEN, 1);
  return replaced(guarded, COPY_DONE, COPY_DONE_AND_RESUMED, 1);
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
