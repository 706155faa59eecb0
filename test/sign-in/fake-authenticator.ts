// Doors over a directory and sign-ins in memory, with a clock that a test moves.

import { AppError } from '@holdfast/kit/app-error';
import type { DirectoryBase } from '@holdfast/kit/directory';
import { ADMIN_ROLE_GROUP } from '@holdfast/kit/names';
import { Secret } from '@holdfast/kit/secret';
import { GuardedAuthenticator, type AuthenticatorOptions } from '../../shared/sign-in/authenticator.ts';
import type { Entrance, FastAuthenticator } from '../../shared/sign-in/port.ts';
import { type FakeAudit, fakeAudit } from '../audit/fake-audit.ts';
import { type FakeDirectory, fakeDirectory } from './fake-directory.ts';
import { fakeFailures } from './fake-failures.ts';
import { type FakeSignIns, fakeSignIns } from './fake-sign-ins.ts';

export const EMERGENCY = 'password of the settings';
export const METRICS_TOKEN = 'metrics-token-0123456789';
export const HERE = '192.0.2.7';

export interface AuthenticatorWorld {
  authenticator: FastAuthenticator;
  directory: FakeDirectory;
  signIns: FakeSignIns;
  audit: FakeAudit;
  /** Names that were bound, by base, in order. */
  binds: string[];
  /** How often an epoch was asked. */
  epochsRequested: number;
  /** While true our own database does not answer. */
  databaseUnavailable: boolean;
  later(ms: number): void;
  /** Doors of another process over the same directory and database. */
  otherProcess(): FastAuthenticator;
  tryWith(username: string, password: string, address?: string, base?: DirectoryBase): Promise<Entrance>;
  /** As often as said with a wrong password, one after the other. */
  fail(times: number, address?: string): Promise<Entrance[]>;
}

/** With `ada` (administrator), `vera` (viewer) and `nora` (no role), whose passwords are `pw-` and their name. */
export function authenticatorWorld(options: Partial<AuthenticatorOptions> = {}): AuthenticatorWorld {
  let nowMs = Date.parse('2026-03-04T05:06:07Z');
  const now = (): Date => new Date(nowMs);
  const directory = fakeDirectory(now);
  const signIns = fakeSignIns(now);
  const audit = fakeAudit(now);
  for (const name of [ADMIN_ROLE_GROUP, 'stack_admin', 'stack_viewer', 'core_Blue']) directory.addGroup(name);
  directory.addPerson('ada', 'pw-ada').groups.push('stack_admin', 'core_Blue');
  directory.addPerson('vera', 'pw-vera').groups.push('stack_viewer');
  directory.addPerson('nora', 'pw-nora');

  const failures = fakeFailures(() => nowMs);
  const reach = (): void => {
    if (world.databaseUnavailable) throw new AppError('unavailable', 'Our own database does not answer');
  };
  const open = (): FastAuthenticator =>
    new GuardedAuthenticator({
      directory: {
        find: (username) => directory.find(username),
        async signIn(base, username, password) {
          world.binds.push(`${base} ${username}`);
          // Binds take time, so that those that come together are judged together.
          await new Promise((turn) => setImmediate(turn));
          return directory.signIn(base, username, password);
        },
      },
      signIns: {
        async recognize(kind, text) {
          reach();
          return signIns.recognize(kind, text);
        },
        async epoch(username) {
          world.epochsRequested += 1;
          reach();
          return signIns.epoch(username);
        },
      },
      audit,
      failures: {
        async failed(address) {
          reach();
          return failures.failed(address);
        },
        async changed(withinMs) {
          reach();
          return failures.changed(withinMs);
        },
        async release(address) {
          reach();
          return failures.release(address);
        },
      },
      roles: { admin: 'stack_admin', viewer: 'stack_viewer' },
      webadminPassword: new Secret(EMERGENCY),
      metricsToken: new Secret(METRICS_TOKEN),
      steadyMs: () => nowMs - Date.parse('2026-01-01T00:00:00Z'),
      wallMs: () => nowMs,
      ...options,
    });

  const world: AuthenticatorWorld = {
    authenticator: open(),
    directory,
    signIns,
    audit,
    binds: [],
    epochsRequested: 0,
    databaseUnavailable: false,
    later: (ms) => void (nowMs += ms),
    otherProcess: open,
    tryWith: (username, password, address = HERE, base = 'web') =>
      world.authenticator.password({ username, password, address, base, requestId: 'request-1' }),
    async fail(times, address = HERE) {
      const all: Entrance[] = [];
      for (let count = 0; count < times; count++) all.push(await world.tryWith('vera', `guess ${count}`, address));
      return all;
    },
  };
  return world;
}

/** A session of this person, as its cookie. */
export async function sessionOf({ signIns }: AuthenticatorWorld, username: string): Promise<string> {
  const expiresAt = '2026-03-04T17:06:07.000Z';
  return (await signIns.openSession({ username, expiresAt, address: HERE, userAgent: 'a browser' })).text;
}
