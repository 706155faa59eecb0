// Handles one LDAP connection: messages in order, requests in parallel, binds alone. Limits what it
// accepts and what it sends before the client reads.

import type { Socket } from 'node:net';
import { unlessAborted } from '@holdfast/kit/timeout';
import { BerError, Framing } from './ber.ts';
import type { Bind, Binder, Identity } from './bind.ts';
import type { LdapEvents } from './events.ts';
import type { LdapLimits } from './limits.ts';
import { type AnsweredRequest, type BindRequest, type Message, readMessage } from './message.ts';
import { type Operate, refusedControl } from './operations.ts';
import { RESULT, type Result, writeNoticeOfDisconnection, writeResult } from './result.ts';
import type { Send } from './search.ts';

export interface ConnectionDeps {
  bind: Bind;
  operate: Operate;
  events: LdapEvents;
  limits: LdapLimits;
  now: () => number;
}

const LINGER_MS = 1_000;
const STORE_FAILED: Result = { code: RESULT.operationsError, text: 'the directory cannot answer now' };

export class Connection implements Binder {
  readonly address: string;
  vouched = false;
  heldBack = false;
  identity: Identity | undefined;
  readonly #socket: Socket;
  readonly #deps: ConnectionDeps;
  readonly #framing = new Framing();
  readonly #running = new Map<number, AbortController>();
  readonly #waitingForRoom: (() => void)[] = [];
  /** What is worked on, given up or not. */
  #working = 0;
  #bind: Message<BindRequest> | undefined;
  #binding = false;
  #closing = false;
  #nextIsDue = false;
  #finishing = false;
  #activeAt: number;
  #partialSince: number | undefined;
  #readAt: number;

  constructor(socket: Socket, address: string, deps: ConnectionDeps) {
    this.#socket = socket;
    this.address = address;
    this.#deps = deps;
    this.#activeAt = deps.now();
    this.#readAt = deps.now();
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('drain', () => this.#roomAgain());
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#stop());
  }

  get gone(): boolean {
    return this.#closing || this.#socket.destroyed;
  }

  get idle(): boolean {
    return this.#running.size === 0 && this.#bind === undefined && !this.#binding;
  }

  /** Has not signed in and waits for nothing that is worth anything. */
  get expendable(): boolean {
    return this.identity === undefined && (this.idle || this.heldBack);
  }

  /** Why the connection has to end by now; undefined when it may stay. */
  overdue(nowMs: number): string | undefined {
    const { limits } = this.#deps;
    if (this.#closing) return undefined;
    if (this.#socket.writableLength > 0 && nowMs - this.#readAt > limits.unreadMs) return 'answers are not read';
    if (this.#partialSince !== undefined && nowMs - this.#partialSince > limits.partialMessageMs) {
      return 'message not complete in time';
    }
    const idleMs = this.identity === undefined ? limits.anonymousIdleMs : limits.idleMs;
    return this.idle && nowMs - this.#activeAt > idleMs ? 'idle for too long' : undefined;
  }

  /** Says why and closes; what is still running is given up. */
  end(code: number, text: string): void {
    if (this.#closing) return;
    this.#leave(writeNoticeOfDisconnection(code, text));
  }

  /**
   * Last words have a moment to arrive: a socket that is destroyed with unread bytes takes them
   * back.
   */
  #leave(lastWords: Buffer): void {
    this.#stop();
    this.#socket.end(lastWords);
    this.#socket.resume();
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  /** Takes nothing more, and ends when the running requests are answered. */
  finish(): void {
    if (this.idle || this.heldBack) this.end(RESULT.unavailable, 'the directory is stopping');
    else this.#finishing = true;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    if (this.#closing) return;
    this.#framing.push(chunk);
    this.#pump();
  }

  get #full(): boolean {
    return (
      this.#finishing ||
      this.#binding ||
      this.#bind !== undefined ||
      Math.max(this.#running.size, this.#working) >= this.#deps.limits.requestsInFlight ||
      this.#socket.writableNeedDrain
    );
  }

  /** A bind may wait long: only who goes on reading sees that the client has left. */
  get #listensOn(): boolean {
    return this.#binding && this.#framing.pending < this.#deps.limits.anonymousMessageBytes;
  }

  /**
   * One message, then the other connections have their turn: reading a filter costs more than
   * sending it.
   */
  #pump(): void {
    if (this.#nextIsDue) return;
    let handled = false;
    try {
      const bytes = this.#closing || this.#full ? undefined : this.#framing.next(this.#maxBytes());
      handled = bytes !== undefined;
      if (bytes !== undefined) this.#handle(bytes);
    } catch (error) {
      this.#protocolError(error);
    }
    if (this.#closing) return;
    const { now } = this.#deps;
    if (handled) this.#partialSince = undefined;
    if (handled && this.#framing.pending > 0) {
      this.#socket.pause();
      this.#nextIsDue = true;
      setImmediate(() => {
        this.#nextIsDue = false;
        this.#pump();
      });
      return;
    }
    if (this.#full) {
      this.#partialSince = undefined;
      if (this.#listensOn) this.#socket.resume();
      else this.#socket.pause();
      return;
    }
    this.#partialSince = this.#framing.pending > 0 ? (this.#partialSince ?? now()) : undefined;
    this.#socket.resume();
  }

  #maxBytes(): number {
    const { limits } = this.#deps;
    return this.identity === undefined ? limits.anonymousMessageBytes : limits.messageBytes;
  }

  #protocolError(error: unknown): void {
    if (error instanceof BerError) this.#deps.events.count('protocolErrors');
    else this.#deps.events.failed(error);
    this.end(RESULT.protocolError, error instanceof BerError ? error.message : 'message cannot be taken');
  }

  #handle(bytes: Buffer): void {
    const message = readMessage(bytes, this.#deps.limits);
    const { id, request } = message;
    this.#activeAt = this.#deps.now();
    switch (request.kind) {
      case 'unbind':
        this.#leave(Buffer.alloc(0));
        return;
      case 'abandon':
        this.#running.get(request.id)?.abort(GIVEN_UP);
        return;
      case 'bind':
        this.#bind = message as Message<BindRequest>;
        this.#bindWhenAlone();
        return;
      case 'search':
      case 'compare':
      case 'extended':
      case 'settled':
        if (this.#running.has(id)) throw new BerError('message id in use');
        void this.#run(message as Message<AnsweredRequest>);
    }
  }

  #bindWhenAlone(): void {
    const message = this.#bind;
    if (message === undefined || this.#binding || this.#running.size > 0) return;
    this.#bind = undefined;
    this.#binding = true;
    void this.#runBind(message);
  }

  async #runBind(message: Message<BindRequest>): Promise<void> {
    this.identity = undefined;
    const result = refusedControl(message) ?? (await this.#settled(async () => this.#deps.bind(this, message.request)));
    this.#binding = false;
    this.#answer(message, result);
  }

  async #run(message: Message<AnsweredRequest>): Promise<void> {
    const controller = new AbortController();
    this.#running.set(message.id, controller);
    const { signal } = controller;
    const timer = setTimeout(() => controller.abort(TOO_LATE), this.#patienceMs(message.request));
    const send = async (bytes: Buffer): Promise<void> => this.#sendEntries(bytes, signal);
    const result =
      refusedControl(message) ??
      (await this.#settled(async () => unlessAborted(signal, this.#work(message, send, signal))));
    clearTimeout(timer);
    this.#running.delete(message.id);
    if (signal.reason === GIVEN_UP) this.#goOn();
    else this.#answer(message, signal.reason === TOO_LATE ? { code: RESULT.timeLimitExceeded } : result);
  }

  /**
   * A request that was given up keeps its place until its work has ended: else there would be no
   * bound to it.
   */
  async #work(message: Message<AnsweredRequest>, send: Send, signal: AbortSignal): Promise<Result> {
    this.#working += 1;
    try {
      return await this.#deps.operate(message, this.identity, send, signal);
    } finally {
      this.#working -= 1;
      if (signal.aborted && !this.#closing) this.#goOn();
    }
  }

  #patienceMs(request: AnsweredRequest): number {
    const { searchMs } = this.#deps.limits;
    const requested = request.kind === 'search' ? request.timeLimitSeconds * 1000 : 0;
    return requested === 0 ? searchMs : Math.min(requested, searchMs);
  }

  /** Whatever goes wrong inside is told as one neutral result. */
  async #settled(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error !== GIVEN_UP && error !== TOO_LATE) this.#deps.events.failed(error);
      return STORE_FAILED;
    }
  }

  #answer({ id, answerTag }: Message, result: Result): void {
    if (!this.#closing && !this.#socket.destroyed) this.#write(writeResult(id, answerTag, result));
    this.#goOn();
  }

  #goOn(): void {
    this.#activeAt = this.#deps.now();
    if (this.#finishing && this.idle) {
      this.end(RESULT.unavailable, 'the directory is stopping');
      return;
    }
    this.#bindWhenAlone();
    this.#pump();
  }

  #write(bytes: Buffer): void {
    if (this.#socket.writableLength === 0) this.#readAt = this.#deps.now();
    this.#socket.write(bytes, () => {
      this.#readAt = this.#deps.now();
    });
  }

  async #sendEntries(bytes: Buffer, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#write(bytes);
    if (this.#socket.writableNeedDrain) {
      await new Promise<void>((resolve) => {
        this.#waitingForRoom.push(resolve);
      });
    }
    signal.throwIfAborted();
  }

  #roomAgain(): void {
    for (const resolve of this.#waitingForRoom.splice(0)) resolve();
    if (!this.#closing) this.#pump();
  }

  #stop(): void {
    this.#closing = true;
    for (const controller of this.#running.values()) controller.abort(GIVEN_UP);
    for (const resolve of this.#waitingForRoom.splice(0)) resolve();
  }
}

const GIVEN_UP = new Error('given up');
const TOO_LATE = new Error('too late');
