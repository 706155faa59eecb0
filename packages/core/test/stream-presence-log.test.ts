// The presence log while the database takes nothing: what it says is lost when the core stops.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import type { PresenceRow } from '../store/presence.ts';
import { StoredPresenceLog } from '../stream/presence-log.ts';
import { settled } from './fake-cot-stream.ts';

const at = new Date('2026-11-22T05:30:00Z');
const who = (uid: string) => ({
  callsign: 'A',
  uid,
  username: 'ada',
  team: '',
  role: '',
  clientVersion: '',
  places: [],
});

/** 250 have come, and the first 200 of them are being written. */
async function atWork(write: (rows: readonly PresenceRow[]) => Promise<void>) {
  const log = memoryLog();
  const noSql = (): never => {
    throw new Error('nothing is asked of a database');
  };
  const store = {
    ids: async (count: number) => Array.from({ length: count }, (_, n) => n),
    write,
    everybodyWent: async () => undefined,
  };
  const presence = new StoredPresenceLog(noSql, log, { now: () => at, store });
  for (let n = 0; n < 250; n++) presence.came(who(`u-${n}`), at);
  await settled();
  const lost = () => log.events.filter(({ event }) => event === 'presence.lost').map(({ fields }) => fields['rows']);
  return { log, presence, lost };
}

describe('a presence log that is closed', () => {
  it('while the database is away says that all is lost, also the batch under way', async () => {
    const { log, presence, lost } = await atWork(async () => {
      throw new AppError('unavailable', 'The database does not answer');
    });
    await presence.close(10);
    expect(lost()).toEqual([250]);
    expect(log.events.find(({ event }) => event === 'presence.behind')?.fields['waiting']).toBe(250);
  });

  it('while the database does not answer says so too, and only once', async () => {
    let answer: () => void = () => undefined;
    const { presence, lost } = await atWork(() => new Promise((resolve) => (answer = resolve)));
    await presence.close(10);
    answer();
    await settled();
    expect(lost()).toEqual([250]);
  });

  it('in between says nothing of what was written or refused', async () => {
    const { presence, lost } = await atWork(async (rows) => {
      if (rows.some(({ who: { uid } }) => uid === 'u-7')) throw Object.assign(new Error('no'), { code: '22001' });
    });
    await presence.close(1_000);
    expect(lost()).toEqual([1]);
  });
});
