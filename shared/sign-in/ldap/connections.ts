// A few connections to the directory that are kept between two pieces of work, and the line of those who wait for one.

import { type LdapConnection, LdapFailure, TOO_SLOW } from './connection.ts';

export interface LdapConnectionsOptions<Kind> {
  /** A new connection, ready for work of that kind. Rejects with an LdapFailure. */
  open(kind: Kind, until: number): Promise<LdapConnection>;
  mostConnections: number;
  /** Those who come when so many wait are refused at once. */
  mostWaiting: number;
  idleMs: number;
}

export interface LdapConnections<Kind> {
  /**
   * Runs one piece of work on a connection that nobody else uses meanwhile. It fails with an LdapFailure when no
   * connection is free, or can be had, `until` then (performance.now()). After a failure the connection is not used again.
   */
  use<T>(kind: Kind, until: number, work: (connection: LdapConnection) => Promise<T>): Promise<T>;
  /** Ends after the work that is under way. */
  close(): Promise<void>;
}

const TOO_LATE = 'is asked too much: no connection was free in time';

interface Idle<Kind> {
  kind: Kind;
  connection: LdapConnection;
  timer: NodeJS.Timeout;
}

export function ldapConnections<Kind>(options: LdapConnectionsOptions<Kind>): LdapConnections<Kind> {
  /** The one that was used last stands last. */
  const idle: Idle<Kind>[] = [];
  const line: (() => void)[] = [];
  let busy = 0;
  let closed: (() => void) | undefined;

  /** Resolves when it is the caller's turn, with the place already taken. */
  async function turn(until: number): Promise<void> {
    if (closed !== undefined) throw new LdapFailure('unavailable', 'is not asked any more', false);
    if (busy < options.mostConnections) return void busy++;
    if (line.length >= options.mostWaiting) throw new LdapFailure('unavailable', 'is asked too much at once', false);
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const called = (): void => {
      clearTimeout(timer);
      resolve(undefined);
    };
    const timer = setTimeout(
      () => {
        line.splice(line.indexOf(called), 1);
        reject(new LdapFailure('unavailable', TOO_LATE, false));
      },
      Math.max(0, until - performance.now()),
    );
    line.push(called);
    await promise;
  }

  /** The place goes to the next in the line, or is free. */
  function leave(): void {
    const next = line.shift();
    if (next !== undefined) return next();
    busy--;
    if (busy === 0) closed?.();
  }

  function drop(connection: LdapConnection): void {
    const at = idle.findIndex((one) => one.connection === connection);
    if (at >= 0) clearTimeout(idle.splice(at, 1)[0]?.timer);
    connection.close();
  }

  function dropAll(): void {
    for (const { connection } of idle.slice()) drop(connection);
  }

  function keep(kind: Kind, connection: LdapConnection): void {
    if (closed !== undefined) return connection.close();
    const timer = setTimeout(() => drop(connection), options.idleMs);
    timer.unref();
    idle.push({ kind, connection, timer });
    connection.rest(() => drop(connection));
  }

  function kept(kind: Kind): LdapConnection | undefined {
    const at = idle.findLastIndex((one) => one.kind === kind);
    const found = at < 0 ? undefined : idle.splice(at, 1)[0];
    clearTimeout(found?.timer);
    return found?.connection;
  }

  async function fresh(kind: Kind, until: number): Promise<LdapConnection> {
    const oldest = idle[0];
    if (oldest !== undefined && busy + idle.length > options.mostConnections) drop(oldest.connection);
    return options.open(kind, until);
  }

  async function on<T>(kind: Kind, connection: LdapConnection, work: (on: LdapConnection) => Promise<T>): Promise<T> {
    try {
      connection.wake();
      const outcome = await work(connection);
      keep(kind, connection);
      return outcome;
    } catch (error) {
      connection.close();
      if (error instanceof LdapFailure) dropAll();
      throw error;
    }
  }

  return {
    async use(kind, until, work) {
      await turn(until);
      try {
        if (performance.now() >= until) throw new LdapFailure('unavailable', TOO_LATE, false);
        const found = kept(kind);
        if (found !== undefined) {
          try {
            return await on(kind, found, work);
          } catch (error) {
            // A directory may close a connection that it has kept for long: nothing was answered, so nothing is lost.
            if (!(error instanceof LdapFailure) || error.answered || error.code !== 'unavailable') throw error;
            // A timer may ring a moment early: what was too late is not asked again in that moment.
            if (error.message === TOO_SLOW || performance.now() >= until) throw error;
          }
        }
        return await on(kind, await fresh(kind, until), work);
      } finally {
        leave();
      }
    },

    async close() {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      closed = () => resolve(undefined);
      dropAll();
      if (busy === 0) closed();
      await promise;
    },
  };
}
