import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { run as dispatchAlerts } from '../../jobs/dispatch-alerts.ts';
import { run as heartbeat } from '../../jobs/heartbeat.ts';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import type { Alert, Message, Notifier, SendOutcome } from '../../shared/alerts/port.ts';
import { NO_HISTORY, type Status } from '../../shared/settings/status.ts';
import { NOW, table, type World, world } from '../health/fake-monitored.ts';
import { fakeDeps } from '../http/fake-deps.ts';

const at = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000);

/** Keeps what it is given; refuses the recipients of the list. */
function memoryNotifier(): Notifier & {
  sent: { to: string; message: Message }[];
  refuses: string[];
  permanent: boolean;
} {
  const sent: { to: string; message: Message }[] = [];
  const notifier = {
    sent,
    refuses: [] as string[],
    permanent: false,
    async send(message: Message, recipients: readonly string[]): Promise<SendOutcome[]> {
      return recipients.map((recipient) => {
        if (notifier.refuses.includes(recipient))
          return {
            recipient,
            accepted: false,
            detail: `550 no such user <${recipient}>`,
            ...(notifier.permanent ? { permanent: true } : {}),
          };
        sent.push({ to: recipient, message });
        return { recipient, accepted: true, detail: '250 ok' };
      });
    },
  };
  return notifier;
}

const DUTY = 'duty@example.org';
const CHIEF = 'chief@example.org';
const PHONE = '+15551234567';

function setUp() {
  const around: World = world();
  const deps = fakeDeps({}, around);
  const [mail, sms] = [memoryNotifier(), memoryNotifier()];
  deps.notify = {
    email: { by: 'SMTP', recipients: [DUTY, CHIEF], notifier: mail },
    sms: { by: 'Twilio', recipients: [PHONE], notifier: sms },
  };
  /** One tick of dispatching at that second. */
  const dispatch = async (second: number): Promise<number> => {
    around.now = at(second);
    return (await dispatchAlerts(deps, around.now)).attempts;
  };
  const observe = (status: Status, second: number, module = 'disk') =>
    deps.alerts.observe({
      module,
      status,
      shouldAlert: status !== 'ok',
      message: `/: 91 % full.`,
      details: ['/: 91 % full; critical from 90 %.'],
      remedies: ['Empty /tmp first.'],
      at: at(second).toISOString(),
      ...NO_HISTORY,
    });
  const only = async (): Promise<Alert> => {
    const { results } = await deps.alerts.list({}, 0, 1);
    if (results[0] === undefined) throw new Error('no alert');
    return results[0];
  };
  return { around, deps, mail, sms, dispatch, observe, only };
}

describe('dispatch-alerts', () => {
  it('sends to everybody on every channel, once', async () => {
    const { mail, sms, dispatch, observe, only } = setUp();
    await observe('critical', 0);
    expect([await dispatch(1), await dispatch(2)]).toEqual([1, 0]);
    expect(mail.sent.map(({ to }) => to)).toEqual([DUTY, CHIEF]);
    expect(sms.sent.map(({ to }) => to)).toEqual([PHONE]);
    expect(await only()).toMatchObject({ state: 'sent', attempts: 1, deliveries: [{}, {}, {}] });
    const { id } = await only();
    expect(mail.sent[0]?.message).toMatchObject({
      id,
      subject: '[Holdfast] disk is critical on cot.example.org',
      text: expect.stringMatching(/91 % full; critical from 90 %[^]*Next steps:?\s+(?:[-*]\s*)?Empty \/tmp first\./),
    });
  });

  it('tries again only those who do not have it, after growing pauses', async () => {
    const { mail, sms, dispatch, observe, only } = setUp();
    mail.refuses = [CHIEF];
    await observe('critical', 0);
    const tried: number[] = [];
    for (let second = 0; second <= 100; second++) if ((await dispatch(second)) > 0) tried.push(second);
    expect(tried).toEqual([0, 5, 15, 35, 75]);
    expect(mail.sent.map(({ to }) => to)).toEqual([DUTY]);
    expect(sms.sent).toHaveLength(1);
    expect(await only()).toMatchObject({
      state: 'pending',
      attempts: 5,
      reason: expect.stringMatching(/550 no such user/),
    });
    mail.refuses = [];
    for (let second = 101; second <= 160; second++) await dispatch(second);
    expect(mail.sent.map(({ to }) => to)).toEqual([DUTY, CHIEF]);
    expect(await only()).toMatchObject({ state: 'sent', attempts: 6, reason: null });
  });

  it('starts the cooldown when the first of them has it, not before', async () => {
    const { mail, sms, dispatch, observe, deps } = setUp();
    mail.refuses = [DUTY, CHIEF];
    sms.refuses = [PHONE];
    await observe('warning', 0);
    await dispatch(0);
    await observe('ok', 100);
    expect((await observe('warning', 200)).kind).toBe('suppressed');
    expect((await deps.alerts.list({ state: 'suppressed' }, 0, 1)).results[0]?.reason).toMatch(/is still pending/);
    mail.refuses = [];
    await dispatch(1000);
    await observe('ok', 1100);
    expect((await observe('warning', 1299)).kind).toBe('suppressed');
    expect((await observe('warning', 1300)).kind).toBe('raised');
  });

  it('gives up after three days, says so, and a level that still stands is raised again', async () => {
    const { mail, sms, dispatch, observe, only, deps } = setUp();
    mail.refuses = [DUTY, CHIEF];
    sms.refuses = [PHONE];
    await observe('critical', 0);
    for (let hour = 0; hour <= 72; hour++) await dispatch(hour * 3600);
    expect(await only()).toMatchObject({ state: 'failed', next_attempt_at: null });
    expect(deps.log.events.at(-1)?.event).toBe('alert.given_up');
    expect(await deps.alerts.summary()).toMatchObject({ failed: 1, failed_reason: expect.stringMatching(/550/) });
    expect((await observe('critical', 72 * 3600 + 60)).kind).toBe('raised');
  });

  it('asks hourly, after ten minutes, those who refuse for good, and for three days when nobody has it', async () => {
    const { mail, sms, dispatch, observe, only } = setUp();
    for (const each of [mail, sms]) Object.assign(each, { refuses: [DUTY, CHIEF, PHONE], permanent: true });
    await observe('critical', 0);
    const tried: number[] = [];
    for (let second = 0; second <= 3 * 86_400 + 3600; second += 5) if ((await dispatch(second)) > 0) tried.push(second);
    const pauses = tried.slice(1).map((second, index) => second - (tried[index] ?? 0));
    expect(pauses.slice(0, 5)).toEqual([5, 10, 20, 40, 50]);
    expect(pauses.slice(15)).toEqual(pauses.slice(15).map(() => 3600));
    expect(tried.length).toBeLessThan(95);
    expect(await only()).toMatchObject({ state: 'failed', reason: expect.stringMatching(/^550/) });
  });

  it('ends an alert that the others have, after ten minutes, when the rest refuses it for good', async () => {
    const { mail, dispatch, observe, only, deps } = setUp();
    Object.assign(mail, { refuses: [CHIEF], permanent: true });
    await observe('critical', 0);
    for (let second = 0; second < 600; second += 5) await dispatch(second);
    expect(await only()).toMatchObject({ state: 'pending' });
    for (let second = 600; second < 700; second += 5) await dispatch(second);
    expect(await only()).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/^not every recipient has it: 550/),
      next_attempt_at: null,
    });
    expect(deps.log.events.at(-1)?.event).toBe('alert.given_up');
  });

  it('goes on when only some of the refusals are for good', async () => {
    const { mail, sms, dispatch, observe, only } = setUp();
    Object.assign(mail, { refuses: [CHIEF], permanent: true });
    sms.refuses = [PHONE];
    await observe('critical', 0);
    for (let second = 0; second < 2000; second += 5) await dispatch(second);
    expect(await only()).toMatchObject({ state: 'pending' });
  });

  it('sends what one module says in its order, other modules meanwhile, and does not wait for a service that is slow', async () => {
    const { deps, dispatch, observe } = setUp();
    const events: string[] = [];
    const waiting: (() => void)[] = [];
    deps.notify = {
      email: {
        by: 'SMTP',
        recipients: [DUTY],
        notifier: {
          async send({ subject }, recipients) {
            const what = /(\w+ (is|was) \w+) on/.exec(subject)?.[1] ?? '';
            events.push(`${what}:`);
            await new Promise<void>((done) => waiting.push(done));
            events.push(`${what}.`);
            return recipients.map((recipient) => ({ recipient, accepted: true, detail: 'ok' }));
          },
        },
      },
    };
    await observe('warning', 0);
    await observe('critical', 1);
    await observe('warning', 2, 'tls');
    const sent = dispatch(3);
    await expect.poll(() => waiting.length).toBe(2);
    expect(events).toEqual(['disk is warning:', 'tls is warning:']);
    waiting.splice(0).forEach((done) => done());
    await expect.poll(() => waiting.length).toBe(1);
    expect(events.slice(4)).toEqual(['disk is critical:']);
    waiting.splice(0).forEach((done) => done());
    expect(await sent).toBe(3);

    events.length = 0;
    for (const [status, second] of [
      ['ok', 400],
      ['warning', 401],
      ['critical', 402],
    ] as const)
      await observe(status, second);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const slow = dispatch(403);
    await expect.poll(() => waiting.length).toBe(1);
    await vi.advanceTimersByTimeAsync(8000);
    await expect.poll(() => waiting.length).toBe(2);
    expect(events).toEqual(['disk is warning:', 'disk is critical:']);
    waiting.splice(0).forEach((done) => done());
    expect(await slow).toBe(2);
  });

  it('does nothing while no channel is set up', async () => {
    const { deps, dispatch, observe, only } = setUp();
    deps.notify = {};
    await observe('critical', 0);
    expect(await dispatch(1)).toBe(0);
    expect((await only()).state).toBe('pending');
  });

  it('writes no address of a receiver into the log', async () => {
    const { deps, mail, dispatch, observe } = setUp();
    mail.refuses = [CHIEF];
    await observe('critical', 0);
    await dispatch(1);
    expect(JSON.stringify(deps.log.events)).not.toMatch(/duty@|chief@|1234567/);
  });
});

describe('poll-health', () => {
  it('tells the engine every evaluation: each trouble is told once, whatever lies between', async () => {
    const { around, deps, mail, dispatch } = setUp();
    const poll = async (minute: number, dead: number): Promise<void> => {
      around.now = at(minute * 60);
      around.tables = [table('cot_router', dead, 10_000)];
      for (let again = 0; again < 3; again++) {
        await pollHealth(deps, around.now);
        await dispatch(minute * 60 + again * 60 + 1);
        around.now = at(minute * 60 + (again + 1) * 60);
      }
    };
    const levels = [0, 1100, 0, 1100, 20_000];
    for (const [index, dead] of levels.entries()) await poll(index * 10, dead);
    const subjects = mail.sent.filter(({ to }) => to === DUTY).map(({ message }) => message.subject);
    expect(subjects).toEqual(
      ['warning', 'warning', 'critical'].map((level) => `[Holdfast] autovacuum is ${level} on cot.example.org`),
    );
  });
});

describe('a restart', () => {
  it('goes on counting where the last process ended', async () => {
    const around = world();
    const before = fakeDeps({}, around);
    const silent = { use: () => Promise.reject(new Error('no answer')) };
    before.monitored.disks = silent;
    for (let minute = 0; minute < 3; minute++) {
      around.now = at(minute * 60);
      await pollHealth(before, around.now);
    }
    const after = fakeDeps({}, around);
    after.alerts = before.alerts;
    after.monitored.disks = silent;
    await pollHealth(after, around.now);
    expect(await after.health.history('disk')).toMatchObject({ failuresInRow: 4, pollsInRow: 4 });
    expect(await after.health.history('database')).toMatchObject({ failuresInRow: 0, pollsInRow: 0 });
  });
});

describe('heartbeat', () => {
  it('beats while the overall status can be computed, and not before or after', async () => {
    const around = world();
    const deps = fakeDeps({}, around);
    let beats = 0;
    deps.heartbeat = {
      beat: async () => void beats++,
      state: async () => ({ last_ok_at: null, failures_in_row: 0, error: null }),
    };
    expect(await heartbeat(deps)).toEqual({ beat: false });
    await pollHealth(deps, NOW);
    expect([await heartbeat(deps), beats]).toEqual([{ beat: true }, 1]);
    around.now = at(600);
    expect(await heartbeat(deps)).toEqual({ beat: false });
  });
});
