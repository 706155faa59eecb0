// What every core does to whoever enrolls, lists, revokes and disconnects: a fake, the embedded one, a TAK Server. Against one
// that serves people nothing happens beyond a certificate of the suite's own.

import { createPrivateKey, createPublicKey, randomBytes, X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { CoreEnrollment, EnrolledCertificate } from '../../shared/core/devices/port.ts';
import type { Core, CoreCertificate } from '../../shared/core/port.ts';

export interface CoreContractWorld {
  core: Core;
  coreEnrollment: CoreEnrollment;
  /** Who may enroll. */
  person: { username: string; password: string };
  longerName: { username: string; password: string } | undefined;
  /** A device of that certificate on the stream, which has reported itself. */
  connect: ((enrolled: EnrolledCertificate, callsign: string) => Promise<{ uid: string; leave(): void }>) | undefined;
  end(): Promise<void>;
}

export interface CoreAbilities {
  /** Certificates and keys are real ones. */
  signs: boolean;
  /** It may be told a wrong password. */
  wrongPasswords: boolean;
  /** There are two people, and the name of one begins with the name of the other. */
  longerName: boolean;
  /** A device of the suite may come on the stream. */
  connects: boolean;
}

const UNKNOWN = Array.from({ length: 32 }, () => 'EF').join(':');
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export function coreContract(what: string, make: () => Promise<CoreContractWorld>, can: CoreAbilities): void {
  describe(`a core (${what})`, () => {
    const clientUid = `holdfast-contract-${randomBytes(4).toString('hex')}`;
    let world: CoreContractWorld;
    let core: Core;
    let coreEnrollment: CoreEnrollment;
    let enrolled: EnrolledCertificate;

    beforeAll(async () => {
      world = await make();
      ({ core, coreEnrollment } = world);
      enrolled = await coreEnrollment.enroll({ ...world.person, clientUid });
    });
    afterAll(() => world.end());

    const codeOf = (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => 'no error',
        (error: unknown) => (error instanceof AppError ? error.code : String(error)),
      );
    const isNow = (text: string | null, withinMs = 10 * MINUTE_MS): boolean =>
      text !== null && ISO.test(text) && Math.abs(Date.parse(text) - Date.now()) < withinMs;
    const hashes = (list: CoreCertificate[]): string[] => list.map(({ hash }) => hash);
    /** In workerd every answer has gone through JSON. */
    const isPlain = (value: unknown): void => expect(JSON.parse(JSON.stringify(value))).toEqual(value);

    describe('enrollment', () => {
      it('gives a certificate with its key, that the core has recorded under the same hash', async () => {
        const { hash, serial, expiresAt, issuedAt } = enrolled;
        expect(hash).toMatch(/^[0-9A-F]{2}(?::[0-9A-F]{2}){31}$/);
        expect(serial).toMatch(/^(?:0|[1-9a-f][0-9a-f]*)$/);
        expect([isNow(issuedAt), ISO.test(expiresAt), expiresAt > issuedAt]).toEqual([true, true, true]);
        isPlain(enrolled);
        const record = await core.certificate(hash);
        expect(record).toMatchObject({ hash, serial, clientUid, expiresAt, revokedAt: null });
        expect(record?.username.toLowerCase()).toBe(world.person.username.toLowerCase());
        expect(isNow(record?.issuedAt ?? null)).toBe(true);
        expect(record?.pem.trim()).toBe(enrolled.certificatePem.trim());
      });

      it.runIf(can.signs)('gives a P-256 key that nobody else has, and the chain from the issuer on', async () => {
        const certificate = new X509Certificate(enrolled.certificatePem);
        const key = createPublicKey(createPrivateKey(enrolled.keyPem));
        expect([key.equals(certificate.publicKey), key.asymmetricKeyDetails?.namedCurve]).toEqual([true, 'prime256v1']);
        expect(enrolled.keyPem).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
        const [issuer] = enrolled.chainPem.map((pem) => new X509Certificate(pem));
        expect(issuer !== undefined && certificate.verify(issuer.publicKey)).toBe(true);
        expect(new Set(enrolled.chainPem).size).toBe(enrolled.chainPem.length);
        // Supports channels: `version` was told.
        expect((certificate as { keyUsage?: string[] }).keyUsage).toContain('1.2.840.113549.1.9.7');
      });

      it('tells its rules to whoever may enroll', async () => {
        const rules = await coreEnrollment.rules(world.person);
        expect(Object.entries(rules).every(([name, value]) => name !== '' && value !== '')).toBe(true);
        isPlain(rules);
      });

      it('gives a bearer token to whoever may enroll, with cookies that say the same', async () => {
        const answer = await coreEnrollment.token({ ...world.person, further: [['scope', 'a b']] });
        isPlain(answer);
        expect(answer.status).toBe(200);
        const { access_token: token, token_type: type } = JSON.parse(answer.json) as Record<string, string>;
        expect(type?.toLowerCase()).toBe('bearer');
        const parts = answer.cookies.map((cookie) => /^access_token_\d=([^;]*);/.exec(cookie)?.[1]);
        expect(parts.join('')).toBe(token);
      });

      it.runIf(can.wrongPasswords)('gives no token for a wrong password, and says so in JSON', async () => {
        const wrong = { username: world.person.username, password: 'not the password', further: [] };
        const { status, json, cookies } = await coreEnrollment.token(wrong);
        expect([[400, 401].includes(status), cookies]).toEqual([true, []]);
        expect(JSON.parse(json)).toMatchObject({ error: 'invalid_grant' });
      });

      it.runIf(can.wrongPasswords)('is forbidden with a wrong password', async () => {
        const wrong = { username: world.person.username, password: 'not the password' };
        expect(await codeOf(coreEnrollment.rules(wrong))).toBe('forbidden');
        expect(await codeOf(coreEnrollment.enroll({ ...wrong, clientUid }))).toBe('forbidden');
      });
    });

    describe('certificates', () => {
      it('are listed for everybody, and for one user by exactly his name in any case', async () => {
        const { username } = world.person;
        const all = await core.certificates();
        expect(hashes(all)).toContain(enrolled.hash);
        const own = await core.certificates(username);
        expect(hashes(own)).toContain(enrolled.hash);
        expect(own.every((each) => each.username.toLowerCase() === username.toLowerCase())).toBe(true);
        expect(await core.certificates(username.slice(0, -1))).toEqual([]);
        expect(await core.certificates('nobody-of-this-name')).toEqual([]);
        expect(own.find(({ hash }) => hash === enrolled.hash)).toEqual(await core.certificate(enrolled.hash));
        isPlain(own);
      });

      it.runIf(can.longerName)('of a name that begins with another are not the other’s', async () => {
        if (world.longerName === undefined) throw new Error('there is nobody of a longer name');
        const { hash } = await coreEnrollment.enroll({ ...world.longerName, clientUid });
        expect(hashes(await core.certificates(world.longerName.username))).toEqual([hash]);
        expect(hashes(await core.certificates(world.person.username))).not.toContain(hash);
        expect(hashes(await core.certificates())).toContain(hash);
      });

      it('that nobody has are undefined, and cannot be revoked', async () => {
        for (const hash of [UNKNOWN, 'active', '', '../cert']) expect(await core.certificate(hash)).toBeUndefined();
        for (const hash of [UNKNOWN, 'active']) expect(await codeOf(core.revoke(hash))).toBe('not_found');
      });

      it('are found by their hash in any case', async () => {
        expect((await core.certificate(enrolled.hash.toLowerCase()))?.hash).toBe(enrolled.hash);
      });

      it('are revoked with a date that is read back, once, and stay in every list', async () => {
        const { hash } = await coreEnrollment.enroll({ ...world.person, clientUid });
        expect(hashes(await core.revokedCertificates())).not.toContain(hash);
        const revoked = await core.revoke(hash);
        expect([revoked.hash, isNow(revoked.revokedAt)]).toEqual([hash, true]);
        expect(await core.revoke(hash)).toEqual(revoked);
        expect(await core.certificate(hash)).toEqual(revoked);
        expect(hashes(await core.certificates(world.person.username))).toContain(hash);
        const all = await core.revokedCertificates();
        expect(all.find((each) => each.hash === hash)).toEqual(revoked);
        expect(all.every(({ revokedAt }) => revokedAt !== null)).toBe(true);
        expect((await core.certificate(enrolled.hash))?.revokedAt).toBeNull();
      });
    });

    describe('clients', () => {
      it.runIf(can.connects)('are who is on the stream, until they are disconnected', async () => {
        if (world.connect === undefined) throw new Error('nobody can connect');
        const device = await world.connect(enrolled, 'CONTRACT');
        const find = async () => (await core.clients()).find(({ uid }) => uid === device.uid);
        await expect.poll(find).toBeDefined();
        // The core keeps who connected for some seconds.
        await expect.poll(async () => isNow((await find())?.since ?? null), { timeout: 15_000 }).toBe(true);
        isPlain(await core.clients());
        const client = await find();
        expect(client).toMatchObject({ callsign: 'CONTRACT', uid: device.uid });
        expect(client?.username.toLowerCase()).toBe(world.person.username.toLowerCase());
        expect([client?.connection !== '', client?.address !== '', isNow(client?.lastReport ?? null)]).toEqual([
          true,
          true,
          true,
        ]);
        expect(new Set(client?.groups).size).toBe(client?.groups.length);
        expect(await core.disconnect(client?.connection ?? '')).toBe(true);
        expect((await core.clients()).map(({ connection }) => connection)).not.toContain(client?.connection);
        device.leave();
      });

      it('that nobody is cannot be disconnected', async () => {
        for (const uid of ['nobody-of-this-uid', 'tls:999999999', '', 'a/b c'])
          expect(await core.disconnect(uid)).toBe(false);
      });
    });

    it('takes the groups of a user anew, also of one whom nobody knows', async () => {
      expect(await core.regroup(world.person.username)).toBeUndefined();
      expect(await core.regroup('nobody.of-this-name')).toBeUndefined();
    });

    it('lists its plugins, or says that their process is down', async () => {
      const listed = await core.plugins().catch((error: unknown) => error);
      if (listed instanceof AppError) expect(listed.code).toBe('unavailable');
      else isPlain(listed);
      const changed = await codeOf(core.changePlugin('no plugin of this name', { enabled: true }));
      expect(changed).toBe(listed instanceof AppError ? 'unavailable' : 'not_found');
    });

    it('tells its version, when it began, and its memory, as far as it knows', async () => {
      const { version, startedAt, memory } = await core.status();
      expect(version).toMatch(/^\d+\.\d+/);
      if (startedAt !== null)
        expect([ISO.test(startedAt), Date.parse(startedAt) <= Date.now() + MINUTE_MS]).toEqual([true, true]);
      if (memory !== null) {
        expect(memory.usedBytes).toBeGreaterThan(0);
        expect(memory.capBytes === null || memory.capBytes >= memory.usedBytes).toBe(true);
      }
    });

    it('tells the load of its stream, if it tells it at all', async () => {
      const stream = await core.stream();
      if (stream !== undefined) expect([stream.clients >= 0, stream.thinningSeconds >= 0]).toEqual([true, true]);
    });

    it('tells the attempts to enroll under a name, newest first, if it tells them at all', async () => {
      const attempts = await core.enrollmentAttempts(world.person.username);
      const times = (attempts ?? []).map(({ at }) => at);
      expect(times.every((at) => isNow(at, 366 * 24 * 60 * MINUTE_MS))).toBe(true);
      expect(times).toEqual(times.toSorted().toReversed());
      isPlain(attempts ?? null);
    });
  });
}
