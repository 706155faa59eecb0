// The clients of the core's ports against a running embedded core, held to the contract; and
// against a TAK Server, when the environment names one.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { HttpEnrollment } from '../../../shared/core/devices/enrollment.ts';
import type { EnrolledCertificate } from '../../../shared/core/devices/port.ts';
import { httpCore } from '../../../shared/core/http.ts';
import { coreContract, type CoreContractWorld } from '../../core/core-contract.ts';
import { coreOf, curl, newChannel, newPerson, workDirectory } from './core-client.ts';
import { newStack, type TestStack } from './embedded.ts';
import { RUN, stands } from './running-stack.ts';
import { letIn } from './stream-device.ts';

const PASSWORD = 'a long enough password';
const [JOHN, LONGER_NAME] = [`john${RUN}`, `john${RUN}-doe`];
const VARIABLES = ['API_URL', 'ENROLLMENT_URL', 'DATA_DIR', 'USERNAME', 'PASSWORD'] as const;

describe('the embedded core', () => {
  let stack: TestStack;

  beforeAll(async () => {
    stack = await newStack();
    expect((await stack.start()).code).toBe(0);
    const john = await newPerson(stack, JOHN, PASSWORD);
    await newPerson(stack, LONGER_NAME, PASSWORD);
    // A TAK Server lists nobody who is in no channel.
    await newChannel(stack, `contract${RUN}`, [john]);
  });

  async function makeWorld(): Promise<CoreContractWorld> {
    const place = coreOf(stack);
    const core = httpCore({ url: place.api, dataDir: place.directory });
    const coreEnrollment = new HttpEnrollment({ url: place.enrollment, dataDir: place.directory });
    return {
      core,
      coreEnrollment,
      person: { username: JOHN, password: PASSWORD },
      longerName: { username: LONGER_NAME, password: PASSWORD },
      async connect({ certificatePem, keyPem }: EnrolledCertificate, callsign) {
        const directory = workDirectory(stack);
        const [certificateFile, keyFile] = [join(directory, 'c.pem'), join(directory, 'c.key')];
        writeFileSync(certificateFile, certificatePem);
        writeFileSync(keyFile, keyPem);
        const device = await letIn(place, { certificateFile, keyFile }, callsign);
        device.report();
        return { uid: device.uid, leave: () => device.leave() };
      },
      end: async () => void (await Promise.all([core.close(), coreEnrollment.close()])),
    };
  }

  coreContract('embedded', makeWorld, { signs: true, wrongPasswords: true, longerName: true, connects: true });

  it.skipIf(stands)(
    'enrolls for Holdfast after wrong passwords from this machine, for it comes from an address of its own',
    async () => {
      const place = coreOf(stack);
      const config = `${place.enrollment}/Marti/api/tls/config`;
      const request = async (password: string): Promise<number> =>
        (await curl(place, ['-u', `${JOHN}:${password}`, config])).status;
      for (let n = 0; n < 10; n += 1) expect(await request(`wrong ${n}`)).toBe(401);
      expect(await request(PASSWORD)).toBe(429);
      const enrollment = new HttpEnrollment({ url: place.enrollment, dataDir: place.directory });
      const order = { username: 'john', password: PASSWORD, clientUid: 'after' };
      expect(await enrollment.enroll(order)).toMatchObject({ hash: expect.any(String) });
      await enrollment.close();
    },
  );

  it('tells the memory of its process and the most that it may use', async () => {
    const { api, directory } = coreOf(stack);
    const core = httpCore({ url: api, dataDir: directory });
    const { memory, startedAt } = await core.status();
    expect(memory?.usedBytes).toBeGreaterThan(1_000_000);
    expect(memory?.capBytes).toBeGreaterThan(memory?.usedBytes ?? 0);
    expect(Date.parse(startedAt ?? '')).toBeLessThan(Date.now());
    await core.close();
  });
});

describe('a TAK Server', () => {
  const given = new Map(VARIABLES.map((name) => [name, process.env[`HOLDFAST_TEST_CORE_${name}`] ?? '']));
  const missing = VARIABLES.filter((name) => given.get(name) === '');
  const value = (name: (typeof VARIABLES)[number]): string => given.get(name) ?? '';

  if (missing.length > 0) {
    it.skip(`is not asked: set ${missing.map((name) => `HOLDFAST_TEST_CORE_${name}`).join(', ')}`);
    return;
  }

  async function makeWorld(): Promise<CoreContractWorld> {
    const core = httpCore({ url: value('API_URL'), dataDir: value('DATA_DIR') });
    const coreEnrollment = new HttpEnrollment({ url: value('ENROLLMENT_URL'), dataDir: value('DATA_DIR') });
    const person = { username: value('USERNAME'), password: value('PASSWORD') };
    const before = new Set((await core.certificates(person.username)).map(({ hash }) => hash));
    return {
      core,
      coreEnrollment,
      person,
      longerName: undefined,
      connect: undefined,
      async end() {
        const own = (await core.certificates(person.username)).filter(({ hash }) => !before.has(hash));
        // Of the suite alone, by the name of its device: somebody else may have enrolled meanwhile.
        const ours = own.filter(
          ({ clientUid, revokedAt }) => clientUid.startsWith('holdfast-contract-') && revokedAt === null,
        );
        for (const { hash } of ours) await core.revoke(hash);
        await Promise.all([core.close(), coreEnrollment.close()]);
      },
    };
  }

  coreContract('a TAK Server', makeWorld, { signs: true, wrongPasswords: false, longerName: false, connects: false });
});
