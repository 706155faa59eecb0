import { rmSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import type { RevokedEntry } from '@holdfast/pki/parts';
import { testPki } from '../../../test/core/fake-test-pki.ts';
import type { CertificateRecord } from '../model/parts.ts';
import { KeptRevocations, ListUnwritten } from '../revocations.ts';
import { createLiveConnections } from '../tls/connections.ts';
import { memoryCertificates } from './fake-core-certificates.ts';

const pki = await testPki();
afterAll(() => rmSync(pki.directory, { recursive: true }));
const [ada, ben] = [(await pki.client('ada')).signed, (await pki.client('ben')).signed];

/** Revocations over a table in memory, with everything that happens in its order. */
async function world(inFiles: RevokedEntry[] = []) {
  const certificates = memoryCertificates();
  const added = [
    await certificates.add(ada, { creator: 'ada', clientUid: 'a' }, new Date()),
    await certificates.add(ben, { creator: 'ben', clientUid: 'b' }, new Date()),
  ] as const;
  const rows = { ada: certificates.row(added[0].id), ben: certificates.row(added[1].id) };
  const clock = { at: Date.parse('2026-11-22T12:00:00Z') };
  const happened: string[] = [];
  const logged: string[] = [];
  const list = { written: [] as string[], dates: [] as Date[], failure: undefined as Error | undefined };
  const note = (event: string): void => void logged.push(event);
  const revocations = new KeptRevocations({
    authority: {
      revokedInFiles: () => inFiles,
      async writeRevocationList(revoked, at) {
        if (list.failure !== undefined) throw list.failure;
        list.written = revoked.map(({ serial }) => serial).toSorted();
        list.dates = revoked.map(({ revokedAt }) => revokedAt);
        happened.push('list');
        return { thisUpdate: at, nextUpdate: new Date(at.getTime() + 7 * DAY_MS) };
      },
    },
    certificates: {
      list: (...requests) => certificates.list(...requests),
      setRevoked: async (id, at) => {
        const row = await certificates.setRevoked(id, at);
        happened.push('row');
        return row;
      },
    },
    tableMark: () => certificates.mark(),
    live: {
      add: () => undefined,
      end: (serial) => {
        happened.push(`ended ${serial === ada.serial ? 'ada' : 'another'}`);
        return 1;
      },
    },
    rebuildContexts: () => void happened.push('contexts'),
    log: { info: note, warn: note, error: note },
    now: () => new Date(clock.at),
  });
  return { certificates, rows, clock, happened, logged, list, revocations };
}

const entry = (serial: string): RevokedEntry => ({
  serial,
  revokedAt: new Date(0),
  expiresAt: new Date(Date.now() + DAY_MS),
  subject: 'CN=somebody',
});

describe('a revocation', () => {
  it('is recorded and refused, old tickets and its connections end, and then it is in the list', async () => {
    const { revocations, rows, happened, list } = await world();
    const row = await revocations.revoke(rows.ada);
    expect(row.revocationDate).toEqual(new Date('2026-11-22T12:00:00Z'));
    expect(happened).toEqual(['row', 'contexts', 'ended ada', 'list']);
    expect([revocations.isRevoked(ada.serial), revocations.isRevoked(ben.serial)]).toEqual([true, false]);
    expect(list.written).toEqual([ada.serial]);
  });

  it('stands although the list cannot be written: told, enforced, and tried again until it is', async () => {
    const { revocations, rows, happened, list, clock, logged } = await world();
    list.failure = new Error('the disk is full');
    await expect(revocations.revoke(rows.ada)).rejects.toThrow(
      /^The certificate is revoked .* couldn't be added to the revocation list/,
    );
    expect(logged).toContain('crl.not_written');
    expect(happened).toEqual(['row', 'contexts', 'ended ada']);
    expect([revocations.isRevoked(ada.serial), revocations.listTimes()]).toEqual([true, undefined]);
    clock.at += 60_000;
    await revocations.look();
    expect(logged).toContain('crl.refresh_failed');
    list.failure = undefined;
    clock.at += 30_000;
    await revocations.look();
    expect(list.written).toEqual([]);
    clock.at += 30_000;
    await revocations.look();
    expect(list.written).toEqual([ada.serial]);
  });

  it('changes nothing while the table is away', async () => {
    const { revocations, rows, happened, certificates } = await world();
    certificates.unavailable(new Error('the database does not answer'));
    await expect(revocations.revoke(rows.ada)).rejects.toThrow('does not answer');
    expect([happened, revocations.isRevoked(ada.serial)]).toEqual([[], false]);
  });

  it('waits for the one before, also when that one fails', async () => {
    const { revocations, rows, happened, list } = await world();
    const both = [revocations.revoke(rows.ada), revocations.revoke(rows.ben)];
    await Promise.all(both);
    expect(happened).toEqual(['row', 'contexts', 'ended ada', 'list', 'row', 'contexts', 'ended another', 'list']);
    list.failure = new Error('full');
    const failing = [revocations.revoke(rows.ada), revocations.revoke(rows.ben)];
    expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('of a row without a readable certificate says so', async () => {
    const { revocations, rows } = await world();
    const broken: CertificateRecord = rows.ada;
    broken.certificate = 'no certificate';
    await expect(revocations.revoke(broken)).rejects.toThrow(/couldn't read the certificate of row 1/);
  });
});

describe('the list', () => {
  it('holds whom the table, the files or this process know', async () => {
    const { revocations, rows, list, certificates } = await world([entry('abc')]);
    rows.ada.revocationDate = new Date(0);
    await revocations.refresh();
    expect(list.written).toEqual([ada.serial, 'abc'].toSorted());
    // A backup of before is put back.
    certificates.rows.splice(0);
    await revocations.refresh();
    expect(list.written).toEqual([ada.serial, 'abc'].toSorted());
  });

  it('leaves out what has no place in it, and dates nobody later than now', async () => {
    const { revocations, rows, list, clock } = await world();
    const der = Buffer.from(ada.der);
    const at = der.indexOf(Buffer.from(ada.serial, 'hex'));
    der.writeUInt8(der.readUInt8(at) | 0x80, at);
    rows.ada.certificate = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`;
    for (const row of [rows.ada, rows.ben]) row.revocationDate = new Date(clock.at + DAY_MS);
    await revocations.refresh();
    expect([list.written, list.dates]).toEqual([[ben.serial], [new Date(clock.at)]]);
  });

  it('is written from the files although the table is away, which is told', async () => {
    const { revocations, list, certificates } = await world([entry('abc')]);
    certificates.unavailable(new Error('the database does not answer'));
    await expect(revocations.refresh()).rejects.toThrow('does not answer');
    expect([list.written, revocations.isRevoked('abc')]).toEqual([['abc'], true]);
  });

  it('that cannot be written is told as just that: everybody is refused all the same', async () => {
    const { revocations, list } = await world([entry('abc')]);
    list.failure = new Error('the disk is full');
    await expect(revocations.refresh()).rejects.toThrow(ListUnwritten);
    expect([revocations.isRevoked('abc'), revocations.listTimes()]).toEqual([true, undefined]);
  });

  it('takes in what somebody has set in the table by hand, and ends its connections', async () => {
    const { revocations, rows, list, happened } = await world();
    await revocations.refresh();
    happened.splice(0);
    await revocations.look();
    expect(happened).toEqual([]);
    rows.ada.revocationDate = new Date(0);
    await revocations.look();
    expect([list.written, happened]).toEqual([[ada.serial], ['contexts', 'ended ada', 'list']]);
  });

  it('is written by every node after one has revoked somebody, so that none is missing in the last', async () => {
    const { revocations, rows, list, happened, clock } = await world();
    await revocations.refresh();
    happened.splice(0);
    rows.ada.revocationDate = new Date(0);
    await revocations.reread();
    await revocations.look();
    expect([happened, list.written]).toEqual([['contexts', 'ended ada', 'list'], [ada.serial]]);
    list.failure = new Error('disk full');
    rows.ben.revocationDate = new Date(0);
    await revocations.reread();
    expect([revocations.isRevoked(ben.serial), revocations.listTimes()]).toEqual([true, undefined]);
    list.failure = undefined;
    clock.at += 60_000;
    await revocations.look();
    expect(list.written).toEqual([ada.serial, ben.serial].toSorted());
  });

  it('of another node counts before the table answers, and stays', async () => {
    const { revocations, rows, certificates, happened } = await world();
    await revocations.revoke(rows.ada);
    const other = await world();
    other.revocations.learn(revocations.refused(rows.ada));
    expect(other.happened).toEqual(['contexts', 'ended ada']);
    await other.revocations.refresh();
    expect([other.revocations.isRevoked(ada.serial), other.list.written]).toEqual([true, [ada.serial]]);
    expect(revocations.refused(certificates.row(rows.ben.id))).toEqual([]);
    expect(happened).toContain('list');
  });

  it('is written anew when a day has passed, and after a clock that was set back', async () => {
    const { revocations, clock, happened } = await world();
    await revocations.refresh();
    clock.at += DAY_MS - 1000;
    await revocations.look();
    expect(happened).toEqual(['list']);
    clock.at += 1000;
    await revocations.look();
    clock.at -= 30 * DAY_MS;
    await revocations.look();
    expect(happened).toEqual(['list', 'list', 'list']);
  });

  it('that has expired is an error every hour, not silence', async () => {
    const { revocations, clock, list, logged } = await world();
    await revocations.refresh();
    list.failure = new Error('the disk is full');
    for (let minutes = 0; minutes < 8 * 24 * 60; minutes += 30) {
      clock.at += 30 * 60_000;
      await revocations.look();
    }
    expect(logged.filter((event) => event === 'crl.expired')).toHaveLength(24 + 1);
  });
});

describe('live connections', () => {
  it('of a serial number end, all but one, and those that have closed are forgotten', () => {
    const live = createLiveConnections();
    const opened = Array.from({ length: 3 }, () => {
      let closed = (): void => undefined;
      const socket = {
        ended: 0,
        destroy: () => void socket.ended++,
        once: (_: 'close', then: () => void) => (closed = then),
      };
      live.add(socket, { serial: 'a', hash: '', commonName: '', subject: '', channels: false });
      return { socket, close: () => closed() };
    });
    opened[0]?.close();
    expect(live.end('b')).toBe(0);
    expect(live.end('a', opened[1]?.socket)).toBe(1);
    expect(opened.map(({ socket }) => socket.ended)).toEqual([0, 0, 1]);
  });
});
