// Alerts of a running stack, received by a real mail server: what is sent, how often, and what
// happens while the mail server, the database or the management process is away.

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Alert } from '../../../shared/alerts/port.ts';
import { type MailSink, mailSink, parseMail, type Taken } from '../../alerts/fake-mail-sink.ts';
import { basic } from '../../http/fake-deps.ts';
import { answersPing, eventually, lives, newStack, query, readerUrl, stop, type TestStack } from './embedded.ts';
import { manageAlone } from './managed.ts';

let sink: MailSink;
let stack: TestStack;
let settings: Record<string, string>;

const owner = (text: string): Promise<object[]> => query(stack.file().database, text);
const authorization = (): string => basic('webadmin', stack.file().webadmin.password);
const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${stack.file().api}${path}`, {
    ...init,
    headers: { authorization: authorization(), 'content-type': 'application/json' },
  });
const alerts = async (filter: string): Promise<Alert[]> =>
  ((await (await ask(`/api/alerts?${filter}`)).json()) as { results: Alert[] }).results;

/** A table with that share of dead rows, in percent; autovacuum leaves it alone. */
async function deadRows(percent: number): Promise<void> {
  await owner(`
    DROP TABLE IF EXISTS rows_dead;
    CREATE TABLE rows_dead (n int) WITH (autovacuum_vacuum_threshold = 1000000000, autovacuum_vacuum_insert_threshold = -1);
    INSERT INTO rows_dead SELECT generate_series(1, 20000)`);
  if (percent > 0) await owner(`DELETE FROM rows_dead WHERE n <= ${percent * 200}`);
}

const [OK, WARNING, CRITICAL] = [0, 10, 50];
const subjectOf = ({ raw }: Taken): string => parseMail(raw).headers.get('subject') ?? '';
const about = (module: string): string[] => sink.taken.map(subjectOf).filter((subject) => subject.includes(module));
const statusIs = (module: string, status: string): Promise<void> =>
  eventually(
    `${module} is ${status}`,
    async () => {
      const body = (await (await ask('/api/health')).json()) as { modules: Record<string, { status: string }> };
      return body.modules[module]?.status === status;
    },
    60_000,
  );

/** The engine starts from nothing: as if no module had ever been anything but ok. */
async function forgetAlerts(): Promise<void> {
  await deadRows(OK);
  await statusIs('autovacuum', 'ok');
  await statusIs('database', 'ok');
  const [supervisor, old] = [stack.pid('supervisor'), stack.pid('management')];
  process.kill(supervisor, 'SIGSTOP');
  try {
    process.kill(old, 'SIGKILL');
    await eventually('it has ended', () => !lives(old), 60_000);
    await query(stack.file().state_database, 'TRUNCATE alert, alert_state');
    rmSync(join(stack.data, 'management/alerts.json'), { force: true });
  } finally {
    process.kill(supervisor, 'SIGCONT');
  }
  await eventually('it was restarted', () => ![0, old].includes(stack.pid('management')), 60_000);
  await eventually('it answers', () => answersPing(stack.file().api), 60_000);
  await statusIs('database', 'ok');
  sink.taken.splice(0);
}

beforeAll(async () => {
  sink = await mailSink();
  stack = await newStack();
  settings = {
    SMTP_URL: `smtp://127.0.0.1:${sink.port}`,
    ALERT_EMAIL_TO: 'duty@example.org, chief@example.org',
    UPDATES_URL: 'off',
    MON_AUTOVACUUM_INTERVAL: '1',
    MON_AUTOVACUUM_ALERT_AFTER_POLLS: '3',
    MON_DATABASE_INTERVAL: '1',
    MON_ALERTS_INTERVAL: '1',
    MON_DISK_ALERT_MIN_LEVEL: 'critical',
    MON_DISK_WARNING: '100',
    MON_DISK_CRITICAL: '100',
  };
  const { code } = await stack.start([], { env: settings });
  expect(code).toBe(0);
});
beforeEach(forgetAlerts);
afterAll(async () => {
  await stop(stack.data);
  await sink.close();
});

describe('an alert', () => {
  it('reaches every receiver within seconds, in plain words, once, also one about events that were not stored', async () => {
    await deadRows(WARNING);
    await eventually('the mail is there', () => about('autovacuum').length === 1, 60_000);
    const [mail] = sink.taken;
    if (mail === undefined) throw new Error('no mail');
    expect(mail.to.toSorted()).toEqual(['chief@example.org', 'duty@example.org']);
    expect(subjectOf(mail)).toBe('[Holdfast] autovacuum is warning on 127.0.0.1');
    const { parts } = parseMail(mail.raw);
    for (const text of [parts['text/plain'] ?? '', parts['text/html'] ?? '']) {
      expect(text).toContain('public.rows_dead');
      expect(text).toMatch(/10 % of its rows are dead \(2000 of 20000\)/);
      expect(text).toMatch(/warning from 5 %/);
      expect(text).toContain(`${stack.file().api}/health/autovacuum`);
    }
    await owner("INSERT INTO archive_loss (began, ended, events, reason) VALUES (now(), now(), 7, 'it was away')");
    await eventually('the mail about losses is there', () => about('database').length > 0, 60_000);
    await delay(4000);
    await owner('DELETE FROM archive_loss');
    expect(about('autovacuum')).toHaveLength(1);
    expect(await alerts('module=autovacuum')).toMatchObject([
      { level: 'warning', state: 'sent', attempts: 1, reason: null },
    ]);
    const [losses, ...more] = sink.taken.filter((taken) => subjectOf(taken).includes('database is warning'));
    expect([parseMail(losses?.raw ?? '').parts['text/plain'], more]).toEqual([
      expect.stringMatching(/7 events of the last 24 h were lost between .*: it was away/s),
      [],
    ]);
  });

  it('escalates inside the cooldown, keeps silent about a return to ok, and about the same level soon after', async () => {
    await deadRows(WARNING);
    await eventually('the warning is there', () => about('autovacuum').length === 1, 60_000);
    await deadRows(CRITICAL);
    await eventually('the critical one is there', () => about('autovacuum').length === 2, 60_000);
    await deadRows(OK);
    await statusIs('autovacuum', 'ok');
    await deadRows(CRITICAL);
    await statusIs('autovacuum', 'critical');
    await delay(2500);
    expect(about('autovacuum').map((subject) => /warning|critical|ok/.exec(subject)?.[0])).toEqual([
      'warning',
      'critical',
    ]);
    expect(await alerts('state=suppressed')).toMatchObject([
      { module: 'autovacuum', level: 'critical', reason: expect.stringMatching(/less than 300 s before/) },
    ]);
  });
});

describe('a mail server that is away', () => {
  it('loses nothing and sends once when it is back, also across a restart of the stack', async () => {
    const { port } = sink;
    await sink.close();
    await deadRows(WARNING);
    const [first] = await eventuallyAlert('module=autovacuum&state=pending', ({ attempts }) => attempts >= 1);
    expect(first).toMatchObject({ reason: expect.stringMatching(/refused the connection/) });
    await stop(stack.data);
    expect((await stack.start([], { env: settings })).code).toBe(0);
    await deadRows(CRITICAL);
    await eventuallyAlert('level=critical&state=pending', ({ attempts }) => attempts >= 2);
    sink = await mailSink({}, port);
    await eventually('both are there', () => about('autovacuum').length === 2, 60_000);
    await delay(3000);
    expect(about('autovacuum')).toHaveLength(2);
    expect((await alerts('module=autovacuum')).map(({ state }) => state)).toEqual(['sent', 'sent']);
  });
});

async function eventuallyAlert(filter: string, holds: (alert: Alert) => boolean): Promise<Alert[]> {
  let found: Alert[] = [];
  await eventually(
    `an alert ${filter}`,
    async () => {
      found = (await alerts(filter)).filter(holds);
      return found.length > 0;
    },
    60_000,
  );
  return found;
}

describe('without a cooldown, which would hide what is told twice', () => {
  beforeAll(async () => {
    settings['MON_ALERT_COOLDOWN'] = '1';
    await stop(stack.data);
    expect((await stack.start([], { env: settings })).code).toBe(0);
  });

  describe('a restart', () => {
    it('in an orderly way or by a crash alerts nobody twice', async () => {
      await deadRows(WARNING);
      await eventuallyAlert('module=autovacuum', ({ state }) => state === 'sent');
      expect(about('autovacuum')).toHaveLength(1);
      const before = stack.pid('management');
      process.kill(before, 'SIGKILL');
      await eventually(
        'it was restarted',
        () => stack.pid('management') !== before && lives(stack.pid('management')),
        60_000,
      );
      await eventually('it answers', () => answersPing(stack.file().api), 60_000);
      await statusIs('autovacuum', 'warning');
      await stop(stack.data);
      expect((await stack.start([], { env: settings })).code).toBe(0);
      await statusIs('autovacuum', 'warning');
      await delay(3000);
      expect(about('autovacuum')).toHaveLength(1);
    });
  });

  describe('two processes over one database', () => {
    it('send once', async () => {
      const urls = { DATABASE_URL: stack.file().state_database, CORE_DATABASE_URL: readerUrl(stack) };
      await manageAlone({ ...settings, ...urls, DB_MAINTENANCE_WORK_MEM: '256MB' }, async (port) => {
        await eventually('the other answers', () => answersPing(`http://127.0.0.1:${port}`), 60_000);
        await delay(2000);
        await deadRows(WARNING);
        await eventually('the mail is there', () => about('autovacuum').length > 0, 60_000);
        await delay(4000);
        expect(about('autovacuum')).toHaveLength(1);
      });
    });
  });

  describe('a PostgreSQL that is away', () => {
    async function whileUnavailable(take: () => void, give: () => void): Promise<void> {
      process.kill(stack.pid('supervisor'), 'SIGSTOP');
      try {
        take();
        await eventually('the mail is there', () => about('database').length === 1, 60_000);
        expect(about('database')[0]).toMatch(/database is critical/);
        await eventuallyAlert('module=database', ({ state }) => state === 'sent');
        await delay(4000);
      } finally {
        give();
        process.kill(stack.pid('supervisor'), 'SIGCONT');
      }
      await statusIs('database', 'ok');
      await eventuallyAlert('module=database', ({ state }) => state === 'sent');
      await delay(3000);
      expect(about('database')).toHaveLength(1);
      expect(await (await ask('/api/alerts?module=database')).json()).toMatchObject({ complete: true, count: 1 });
    }

    it('because it stopped is alerted all the same, once, also when it comes back', async () => {
      await whileUnavailable(
        () => process.kill(stack.pid('database'), 'SIGINT'),
        () => undefined,
      );
    });

    it('because it hangs is alerted too, once', async () => {
      const rows = (
        await query<{ pid: number }>(
          stack.file().database,
          "SELECT pid FROM pg_stat_activity WHERE usename IN ('holdfast', 'holdfast_ro')",
        )
      ).map(({ pid }) => pid);
      const frozen = [stack.pid('database'), ...rows];
      const signal = (name: NodeJS.Signals) => (): void => {
        for (const pid of frozen) if (lives(pid)) process.kill(pid, name);
      };
      await whileUnavailable(signal('SIGSTOP'), signal('SIGCONT'));
    });

    it('and a management process that is killed meanwhile alerts nobody twice', async () => {
      const management = stack.pid('management');
      process.kill(stack.pid('supervisor'), 'SIGSTOP');
      try {
        process.kill(stack.pid('database'), 'SIGINT');
        await eventually('the mail is there', () => about('database').length === 1, 60_000);
        const journal = join(stack.data, 'management/alerts.json');
        await eventually(
          'it is noted on disk',
          () => /"module":"database"[^{}]*"state":"sent"/.test(readFileSync(journal, 'utf8')),
          60_000,
        );
        process.kill(management, 'SIGKILL');
      } finally {
        process.kill(stack.pid('supervisor'), 'SIGCONT');
      }
      await eventually('it was restarted', () => stack.pid('management') !== management, 60_000);
      await eventually('it answers', () => answersPing(stack.file().api), 60_000);
      await statusIs('database', 'ok');
      await delay(3000);
      expect(about('database')).toHaveLength(1);
    });
  });
});

describe('POST /api/ops/alerts/test', () => {
  it('sends a message now, and says when it could not be sent or nothing is set up', async () => {
    const test = (channel: string): Promise<Response> =>
      ask('/api/ops/alerts/test', { method: 'POST', body: JSON.stringify({ channel }) });
    expect(await (await test('email')).json()).toMatchObject({ delivered: true });
    expect(sink.taken.map(subjectOf)).toEqual(['[Holdfast] Test message from 127.0.0.1']);
    const { port } = sink;
    await sink.close();
    expect(await (await test('email')).json()).toMatchObject({
      delivered: false,
      detail: expect.stringMatching(/refused/),
    });
    sink = await mailSink({}, port);
    expect((await test('sms')).status).toBe(409);
  });
});
