// What CoreDevices must do, whoever answers: the double, and the adapter at a real core with real certificates.

import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CoreDevices, Met } from '../../shared/core/devices/port.ts';

export interface CoreDevicesUnderTest {
  devices: CoreDevices;
  /** Enrolls somebody and keeps the key; resolves with the hash. Everybody hears everybody. */
  enrolled(username: string): Promise<string>;
  revoke(hash: string): Promise<void>;
  /** It answers nobody any more. For good. */
  kill(): Promise<void>;
}

const NOBODY = Array.from({ length: 32 }, () => '00').join(':');

export function eventOf(uid: string): string {
  const at = Date.now();
  const [time, stale] = [new Date(at).toISOString(), new Date(at + 60_000).toISOString()];
  return (
    `<event version="2.0" uid="${uid}" type="t-x-holdfast-test" how="m-g" time="${time}" start="${time}" stale="${stale}">` +
    '<point lat="0" lon="0" hae="0" ce="9999999" le="9999999"/><detail/></event>'
  );
}

export function connectionOf(met: Met): string {
  if ('refused' in met) throw new Error(met.refused);
  return met.connection;
}

export function coreDevicesContract(what: string, make: () => Promise<CoreDevicesUnderTest>): void {
  describe(`devices at the core (${what})`, () => {
    let world: CoreDevicesUnderTest;
    let devices: CoreDevices;
    beforeAll(async () => {
      world = await make();
      devices = world.devices;
    });

    it('meets a certificate, and answers on the connection until it is closed', async () => {
      const hash = await world.enrolled('ada');
      const met = await devices.connect(hash);
      expect(met).toMatchObject({ connection: expect.any(String), milliseconds: expect.any(Number) });
      const connection = connectionOf(met);
      expect([await devices.answers(connection), await devices.answers(connection)]).toEqual([true, true]);
      await devices.close(connection);
      expect(await devices.answers(connection)).toBe(false);
      expect(await devices.roles(hash)).toEqual(['ROLE_ANONYMOUS']);
    });

    it('brings an event from one connection to the other, also when nobody waited for it, and not back', async () => {
      const hash = await world.enrolled('bob');
      const [from, to] = [connectionOf(await devices.connect(hash)), connectionOf(await devices.connect(hash))];
      const [first, second] = [randomUUID(), randomUUID()];
      await devices.send(from, eventOf(first));
      expect(await devices.received(to, first, 5_000)).toEqual(expect.any(Number));
      await devices.send(from, eventOf(second));
      // Answered in the order of events: the event was there before the answer.
      expect([await devices.answers(from), await devices.answers(to)]).toEqual([true, true]);
      expect(await devices.received(to, second, 0)).toEqual(expect.any(Number));
      expect(await devices.received(to, first, 0)).toEqual(expect.any(Number));
      expect(await devices.received(to, randomUUID(), 50)).toBeUndefined();
      expect(await devices.received(from, first, 50)).toBeUndefined();
      for (const each of [from, to]) await devices.close(each);
    });

    it('refuses a revoked certificate on both ports, and ends its open connection alone', async () => {
      const [eves, adas] = [await world.enrolled('eve'), await world.enrolled('ada')];
      const [open, other] = [connectionOf(await devices.connect(eves)), connectionOf(await devices.connect(adas))];
      await world.revoke(eves);
      expect(await devices.connect(eves)).toEqual({ refused: expect.stringMatching(/^the core /) });
      expect(await devices.roles(eves)).toBeUndefined();
      await expect.poll(() => devices.answers(open)).toBe(false);
      await expect(devices.send(open, eventOf('late'))).rejects.toMatchObject({ code: 'unavailable' });
      expect(await devices.received(open, 'late', 5_000)).toBeUndefined();
      expect(await devices.answers(other)).toBe(true);
      await devices.close(other);
    });

    it('says not_found where no key is kept', async () => {
      await expect(devices.connect(NOBODY)).rejects.toMatchObject({ code: 'not_found' });
      await expect(devices.roles(NOBODY)).rejects.toMatchObject({ code: 'not_found' });
    });

    it('knows no connection that was never made', async () => {
      expect(await devices.answers('none')).toBe(false);
      expect(await devices.received('none', 'any', 1_000)).toBeUndefined();
      await expect(devices.send('none', eventOf('any'))).rejects.toMatchObject({ code: 'unavailable' });
      await expect(devices.close('none')).resolves.toBeUndefined();
    });

    it('says unavailable of a core that is gone, and nothing of the certificate', async () => {
      const hash = await world.enrolled('zoe');
      const open = connectionOf(await devices.connect(hash));
      await world.kill();
      await expect.poll(() => devices.answers(open)).toBe(false);
      await expect(devices.connect(hash)).rejects.toMatchObject({ code: 'unavailable' });
      await expect(devices.roles(hash)).rejects.toMatchObject({ code: 'unavailable' });
    });
  });
}
