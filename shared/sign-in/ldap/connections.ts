// Pools a few connections to the directory, with a queue of callers waiting for one.

import { type LdapConnection, LdapFailure, TOO_SLOW } from './connection.ts';

export interface LdapConnectionsOptions<Kind> {
  /** Opens a connection that is ready for work of that kind. Rejects with an LdapFailure. */
  open(kind: Kind, until: number): Promise<LdapConnection>;
  maxConnections: number;
  /** Beyond this queue length, callers are refused at once. */
  maxWaiting: number;
  idleMs: number;
}

const TOO_LATE = 'is overloaded: no connection was free in time';

interface Idle<Kind> {
  kind: Kind;
  connection: LdapConnection;
  timer: NodeJS.Timeout;
}

export class LdapConnections<Kind> {
  readonly #options: LdapConnectionsOptions<Kind>;
  /** The most recently used one is last. */
  readonly #idle: Idle<Kind>[] = [];
  readonly #line: (() => void)[] = [];
  #busy = 0;
  #closed: (() => void) | undefined;

  constructor(options: LdapConnectionsOptions<Kind>) {
    this.#options = options;
  }

  /** Resolves when it is the caller's turn, with the slot already taken. */
  async #turn(until: number): Promise<void> {
    if (this.#closed !== undefined) throw new LdapFailure('unavailable', 'is no longer in use', false);
    if (this.#busy < this.#options.maxConnections) return void this.#busy++;
    if (this.#line.length >= this.#options.maxWaiting)
      throw new LdapFailure('unavailable', 'is overloaded: too many requests at once', false);
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const called = (): void => {
      clearTimeout(timer);
      resolve(undefined);
    };
    const timer = setTimeout(
      () => {
        this.#line.splice(this.#line.indexOf(called), 1);
        reject(new LdapFailure('unavailable', TOO_LATE, false));
      },
      Math.max(0, until - performance.now()),
    );
    this.#line.push(called);
    await promise;
  }

  /** The slot goes to the next caller in the queue, or is free. */
  #leave(): void {
    const next = this.#line.shift();
    if (next !== undefined) return next();
    this.#busy--;
    if (this.#busy === 0) this.#closed?.();
  }

  #drop(connection: LdapConnection): void {
    const at = this.#idle.findIndex((one) => one.connection === connection);
    if (at >= 0) clearTimeout(this.#idle.splice(at, 1)[0]?.timer);
    connection.close();
  }

  #dropAll(): void {
    for (const { connection } of this.#idle.slice()) this.#drop(connection);
  }

  #keep(kind: Kind, connection: LdapConnection): void {
    if (this.#closed !== undefined) return connection.close();
    const timer = setTimeout(() => this.#drop(connection), this.#options.idleMs);
    timer.unref();
    this.#idle.push({ kind, connection, timer });
    connection.rest(() => this.#drop(connection));
  }

  #kept(kind: Kind): LdapConnection | undefined {
    const at = this.#idle.findLastIndex((one) => one.kind === kind);
    const found = at < 0 ? undefined : this.#idle.splice(at, 1)[0];
    clearTimeout(found?.timer);
    return found?.connection;
  }

  async #fresh(kind: Kind, until: number): Promise<LdapConnection> {
    const oldest = this.#idle[0];
    if (oldest !== undefined && this.#busy + this.#idle.length > this.#options.maxConnections)
      this.#drop(oldest.connection);
    return this.#options.open(kind, until);
  }

  async #on<T>(kind: Kind, connection: LdapConnection, work: (on: LdapConnection) => Promise<T>): Promise<T> {
    try {
      connection.wake();
      const outcome = await work(connection);
      this.#keep(kind, connection);
      return outcome;
    } catch (error) {
      connection.close();
      if (error instanceof LdapFailure) this.#dropAll();
      throw error;
    }
  }

  /**
   * Runs one piece of work on a connection that has no other user meanwhile. It fails with an
   * LdapFailure when no connection becomes free or can be opened by `until` (performance.now()).
   * After a failure the connection is not reused.
   */
  async use<T>(kind: Kind, until: number, work: (connection: LdapConnection) => Promise<T>): Promise<T> {
    await this.#turn(until);
    try {
      if (performance.now() >= until) throw new LdapFailure('unavailable', TOO_LATE, false);
      const found = this.#kept(kind);
      if (found !== undefined) {
        try {
          return await this.#on(kind, found, work);
        } catch (error) {
          // A directory may close a connection that was idle for long: nothing was received, so
          // nothing is lost.
          if (!(error instanceof LdapFailure) || error.answered || error.code !== 'unavailable') throw error;
          // A timer may fire a moment early: a request that was too late is not sent in that
          // moment.
          if (error.message === TOO_SLOW || performance.now() >= until) throw error;
        }
      }
      return await this.#on(kind, await this.#fresh(kind, until), work);
    } finally {
      this.#leave();
    }
  }

  /** Ends after the work that is running. */
  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.#closed = () => resolve(undefined);
    this.#dropAll();
    if (this.#busy === 0) this.#closed();
    await promise;
  }
}
