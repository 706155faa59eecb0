// What every core does with its policy and its schedule: a fake, the embedded one. It begins as it is set up: keeping everything.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { KEEP_ALL, NEVER } from '@holdfast/kit/retention';
import type { CoreRetention } from '../../shared/core/port.ts';

export interface CoreRetentionWorld {
  core: CoreRetention;
  end(): Promise<void>;
}

/** The code that the work is refused with. */
export const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof AppError ? error.code : String(error)),
  );

/** In workerd every answer has gone through JSON. */
export const isPlain = (value: unknown): void => expect(JSON.parse(JSON.stringify(value))).toEqual(value);

export function coreRetentionContract(what: string, make: () => Promise<CoreRetentionWorld>): void {
  describe(`retention at a core (${what})`, () => {
    let world: CoreRetentionWorld;
    let core: CoreRetention;
    beforeAll(async () => {
      world = await make();
      ({ core } = world);
    });
    afterAll(() => world.end());

    it('keeps everything and runs never, until somebody says so', async () => {
      expect(await core.policy()).toEqual(KEEP_ALL);
      expect(await core.schedule()).toBe(NEVER);
    });

    it('changes the keys that are given, and those alone', async () => {
      expect(await core.changePolicy({ cot: 30, missions: 365 })).toEqual({ ...KEEP_ALL, cot: 30, missions: 365 });
      const changed = await core.changePolicy({ cot: null, geochat: 1, files: 36_500, missionpackages: 7 });
      expect(changed).toEqual({ cot: null, geochat: 1, files: 36_500, missionpackages: 7, missions: 365 });
      expect(await core.policy()).toEqual(changed);
      isPlain(changed);
      expect(await core.changePolicy({})).toEqual(changed);
      expect(await core.changePolicy(KEEP_ALL)).toEqual(KEEP_ALL);
    });

    it('takes a schedule, and none', async () => {
      for (const cron of ['0 0 3 * * ?', '0 30 4 ? * *', NEVER]) {
        expect(await core.changeSchedule(cron)).toBe(cron);
        expect(await core.schedule()).toBe(cron);
      }
    });

    it('keeps the schedule that it has when it is given none that it can read, and says so', async () => {
      await core.changeSchedule('0 0 3 * * ?');
      for (const wrong of ['never', '0 0 3 * *'])
        expect(await codeOf(core.changeSchedule(wrong)), wrong).toBe('upstream');
      expect(await core.schedule()).toBe('0 0 3 * * ?');
      await core.changeSchedule(NEVER);
    });

    it('tells when missions are archived', async () => {
      const archiving = await core.missionArchiving();
      expect(archiving).toEqual({
        cron: NEVER,
        timeToArchiveAfterNoActivityDays: 365,
        removeFromArchiveAfterDays: 1065,
        archiveMissionByNoContentActivity: false,
        archiveMissionByNoSubscriptionActivity: false,
      });
      isPlain(archiving);
    });
  });
}
