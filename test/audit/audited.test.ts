import { describe, expect, it } from 'vitest';
import { AppError, type ErrorCode } from '@holdfast/kit/app-error';
import { audited, type Progress } from '../../shared/audit/audited.ts';
import { fakeAudit } from './fake-audit.ts';

const ACTION = {
  actor: { username: 'webadmin', address: '192.0.2.7', requestId: 'request-1' },
  action: 'user.deactivate',
  target: 'vera',
  detail: { is_active: false },
};

function started() {
  const ended: string[] = [];
  const audit = fakeAudit(undefined, (username) => ended.push(username));
  const reported = () =>
    audit.records.map(({ phase, result, intent, detail }) => [phase, result, intent, JSON.parse(detail)]);
  return { audit, ended, told: reported };
}

const INTENT = ['intent', null, null, { is_active: false }];

describe('an audited deed', () => {
  it('has its intent before it and its outcome after it', async () => {
    const { audit, told: reported } = started();
    const done = await audited({ audit }, ACTION, async () => reported());
    expect(done).toEqual([INTENT]);
    expect(reported()).toEqual([INTENT, ['outcome', 'ok', 1, {}]]);
    expect(audit.records).toMatchObject([
      { actor: 'webadmin', action: 'user.deactivate', target: 'vera' },
      { actor: 'webadmin', action: 'user.deactivate', target: 'vera' },
    ]);
  });

  it('is not done when the intent cannot be committed', async () => {
    const { audit, ended, told: reports } = started();
    audit.mood = 'away';
    let begun = false;
    const work = async (): Promise<void> => void (begun = true);
    await expect(audited({ audit }, { ...ACTION, endsSignInsOf: 'vera' }, work)).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect([begun, ended, reports()]).toEqual([false, [], []]);
  });

  it.each<[ErrorCode]>([['invalid'], ['conflict'], ['not_found'], ['forbidden']])(
    'has failed when it was refused (%s), and ends no sign-ins',
    async (code) => {
      const { audit, ended, told: notify } = started();
      const error = new AppError(code, 'It is not so.');
      const work = async () => {
        throw error;
      };
      await expect(audited({ audit }, { ...ACTION, endsSignInsOf: 'vera' }, work)).rejects.toBe(error);
      expect(notify()).toEqual([INTENT, ['outcome', 'failed', 1, { error: 'It is not so.' }]]);
      expect(ended).toEqual([]);
    },
  );

  it.each([new AppError('unavailable', 'no answer'), new AppError('upstream', 'nonsense'), new Error('a defect')])(
    'is unknown when it may have been done all the same (%s), and ends sign-ins to be safe',
    async (error) => {
      const { audit, ended, told } = started();
      const work = async () => {
        throw error;
      };
      await expect(audited({ audit }, { ...ACTION, endsSignInsOf: 'vera' }, work)).rejects.toBe(error);
      expect(told()).toEqual([INTENT, ['outcome', 'unknown', 1, { error: error.message }]]);
      expect(ended).toEqual(['vera']);
    },
  );

  it('stays open when it fails after it has begun, and says that the rest will be done', async () => {
    const { audit, ended, told } = started();
    const cause = new AppError('unavailable', 'The provider does not answer.', {
      fields: [{ path: 'a', message: 'b' }],
    });
    const outcome = audited({ audit }, { ...ACTION, endsSignInsOf: 'vera' }, async (progress) => {
      progress.begun();
      throw cause;
    });
    await expect(outcome).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^The provider does not answer\. The change may be incomplete\. Holdfast retries/),
      fields: cause.fields,
      cause,
    });
    expect([told(), ended]).toEqual([[INTENT], []]);
    expect(await audit.unfinished(new Date(Date.now() + 1000).toISOString(), 10)).toMatchObject([
      { seq: 1, target: 'vera' },
    ]);
  });

  it('that has begun and is done has its outcome, and ends the sign-ins', async () => {
    const { audit, ended, told } = started();
    const work = async (progress: Progress): Promise<string> => {
      progress.begun();
      return 'done';
    };
    expect(await audited({ audit }, { ...ACTION, endsSignInsOf: 'vera' }, work)).toBe('done');
    expect([told().at(-1), ended]).toEqual([['outcome', 'ok', 1, {}], ['vera']]);
  });

  it('is not taken for a failure when only its outcome could not be told', async () => {
    const { audit } = started();
    const concluded: string[] = [];
    const conclude = async (_: number, __: unknown, { result }: { result: string }): Promise<void> => {
      concluded.push(result);
      throw new Error('an audit log that breaks its promise');
    };
    await expect(audited({ audit: { ...audit, conclude } }, ACTION, async () => 'done')).rejects.toThrow(
      /breaks its promise/,
    );
    expect(concluded).toEqual(['ok']);
  });
});
