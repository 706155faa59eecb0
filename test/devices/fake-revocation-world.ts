// People with certificates, a core that revokes them, and a canary that has passed: what tests of revocation begin with.

import { CANARY_ACCOUNT } from '@holdfast/kit/names';
import type { CoreCertificate } from '../../shared/core/port.ts';
import type { CanaryRun, Revocation } from '../../shared/devices/port.ts';
import { noteAsRevoking } from '../../shared/devices/revocation/prove.ts';
import type { FakeCore } from '../core/fake-core.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

export interface RevocationWorld extends PeopleWorld {
  core: FakeCore;
  /** A certificate that Holdfast made: in the book, its key kept. */
  made(username: string, name?: string): Promise<CoreCertificate>;
  /** Notes it, as somebody who revokes it does. */
  note(certificate: CoreCertificate): Promise<void>;
  revocation(certificate: CoreCertificate): Promise<Revocation | undefined>;
  revocations(username?: string): Promise<Revocation[]>;
  later(seconds: number): void;
  iso(): string;
  /** A canary that ran just now, on this core. */
  canary(run?: Partial<CanaryRun>): Promise<void>;
}

export const never = new AbortController().signal;

export async function revocationWorld(): Promise<RevocationWorld> {
  const world = await peopleWorld();
  const { deps, around } = world;
  const core = deps.theCore;
  await world.account({ username: CANARY_ACCOUNT, kind: 'service' });
  const iso = (): string => around.now.toISOString();

  const canary: RevocationWorld['canary'] = (run = {}) =>
    deps.certificateStore.recordCanary({
      at: iso(),
      ok: true,
      signed: true,
      problem: null,
      coreStartedAt: core.status.startedAt,
      ...run,
    });
  await canary();

  const revocations: RevocationWorld['revocations'] = (username) =>
    deps.certificateStore.revocations(username === undefined ? undefined : [username]);

  return {
    ...world,
    core,
    iso,
    canary,
    revocations,
    revocation: async ({ hash }) => (await revocations()).find((each) => each.hash === hash),
    later(seconds) {
      around.now = new Date(around.now.getTime() + seconds * 1000);
    },
    async made(username, name = 'phone') {
      const certificate = core.enrolledByDevice(username, `holdfast-${name}`);
      const { hash, serial, clientUid, issuedAt, expiresAt, pem } = certificate;
      await deps.clientKeys.keep(hash, { keyPem: 'a key', certificatePem: pem, chainPem: [] });
      await deps.certificateStore.remember({ hash, username, name, serial, clientUid, issuedAt, expiresAt });
      return certificate;
    },
    note: (certificate) => noteAsRevoking(deps, [certificate], iso()),
  };
}

/** Puts something in the place of a method until it is put back; it is given the real one. */
export function standIn<T, K extends keyof T>(port: T, name: K, make: (real: T[K]) => T[K]): () => void {
  const real = port[name];
  port[name] = make((typeof real === 'function' ? real.bind(port) : real) as T[K]);
  return () => {
    port[name] = real;
  };
}
