import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { sheetText } from '@holdfast/stack/operator/emergency-sheet';
import { run } from '../../jobs/back-up.ts';
import type { EmergencySheet } from '../../shared/backups/view.ts';
import { answerOperator, type OperatorDeps } from '../../shared/runtime/operator-answers.ts';
import { type World, world } from '../health/fake-monitored.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';
import { textOf, visit, type Visitor } from '../pages/page-session.ts';
import { proofOf } from './fake-backups.ts';

const PASSPHRASE = 'open sesame of the station';
const SETTINGS = { BACKUP_TARGET: '/mnt/backups', BACKUP_PASSPHRASE: PASSPHRASE, BACKUP_TOKEN: 'Xk3vT8mQzR5nWc2Lp7Bd' };
const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
const SHEET = '/backups/emergency-sheet';

let around: World;
let deps: FakeDeps;
let name: string;
beforeEach(() => {
  around = world();
  deps = fakeDeps(SETTINGS, around);
  name = around.backups.the.backups[0]?.name ?? '';
});
const at = (username = 'webadmin'): Promise<Visitor> => visit({ username, deps, around });

describe('the page of the backups', () => {
  it('lists them newest first with level, size, and how to restore the last proven one', async () => {
    around.now = new Date('2026-03-05T05:00:00.000Z');
    const created = '2026-03-05T02:30:00.000Z';
    const failed = proofOf(created, 'decrypts', { error: 'cot_router: 9 rows of 10' });
    const newer = around.backups.add({ created_at: created, proof: failed, requested_by: 'ada', permanent: true });
    const html = await (await at()).page('/backups');
    const text = textOf(html);
    expect(text.indexOf(newer.name)).toBeLessThan(text.indexOf(name));
    expect(text).toContain('2026-03-05 02:30 2 hours ago');
    for (const part of ['Decrypts', 'cot_router: 9 rows of 10', 'Permanent', 'ada', '68 MB', 'Serves', '123,456 rows'])
      expect(text).toContain(part);
    expect(text).toContain(`./scripts/start.sh --embedded --data NEW --restore ${name} --passphrase-file FILE`);
    expect(text).toContain('0 30 2 * * ? (UTC)');
    expect(html).toContain(`href="/api/backups/${name}/archive"`);
    expect(html).not.toContain(PASSPHRASE);
    expect(html).not.toContain(SETTINGS.BACKUP_TOKEN);
  });

  it('runs one now, follows it, and offers no second one meanwhile', async () => {
    const { post, page } = await at();
    const answer = await post('/backups', { without_history: 'true' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/backups?done=run']);
    expect(textOf(await page('/backups?done=run'))).toContain('It starts within a few seconds.');
    await run(deps, around.now);
    const figures = { phase: 'Copying cot_router', percent: 41.6, bytes_per_second: 25e6, seconds_left: 95 };
    Object.assign(around.backups.the.running ?? {}, figures);
    const html = await page('/backups');
    expect(textOf(html)).toContain('42 % - Copying cot_router (25 MB/s, about');
    expect(html).toContain('data-every="2"');
    expect(html).not.toContain('>Run now<');
    expect(html).not.toContain('/proof"');
    const second = await post('/backups');
    expect([second.status, textOf(await second.text())]).toEqual([409, expect.stringContaining('already running')]);
    around.backups.end();
    expect(around.backups.the.backups[0]?.history).toBe(false);
  });

  it('proves one, and keeps one until that is taken back', async () => {
    const { post, page } = await at();
    expect((await post(`/backups/${name}/permanent`, { permanent: 'true' })).headers.get('location')).toBe(
      '/backups?done=kept',
    );
    expect(await page('/backups')).toContain('Unmark as permanent');
    await post(`/backups/${name}/permanent`, { permanent: 'false' });
    expect(around.backups.the.backups[0]?.permanent).toBe(false);
    expect((await post(`/backups/${name}/proof`)).headers.get('location')).toBe('/backups?done=proof');
    await run(deps, around.now);
    expect(around.backups.the.running).toMatchObject({ kind: 'proof', name });
    around.backups.end();
    await run(deps, around.now);
    const [job] = (await deps.opsJobs.list({}, 0, 1)).results;
    expect(textOf(await page(`/jobs/${job?.id}`))).toContain('68 MB. Proven: Serves.');
    expect((await post('/backups/missing/proof')).status).toBe(404);
  });

  it('shows why the last one failed, and what is wrong with the target', async () => {
    around.backups.the.last_failure = {
      kind: 'backup',
      at: '2026-03-04T02:30:00.000Z',
      name: null,
      error: 'No room <b>.',
    };
    around.backups.the.target = {
      kind: 'directory',
      place: '/mnt/backups',
      free_bytes: null,
      error: 'It is not mounted.',
    };
    const html = await (await at()).page('/backups');
    expect(html).toContain('No room &lt;b&gt;.');
    expect(textOf(html)).toContain('can’t be used: It is not mounted.');
  });

  it('keeps working while the service is down, and explains how to set backups up', async () => {
    around.backups.error = new AppError('unavailable', 'The backup service refused the connection. Remedy: look.');
    const { page, post } = await at();
    expect(textOf(await page('/backups'))).toContain('Couldn’t load the backups. The backup service refused');
    expect((await post('/backups')).status).toBe(503);
    deps = fakeDeps({}, around);
    const off = await at();
    expect(textOf(await off.page('/backups'))).toContain('No backups are made: BACKUP_TARGET is not set.');
    expect((await off.post('/backups')).status).toBe(409);
  });

  it('shows viewers everything, and nothing to press', async () => {
    const html = await (await at('vera')).page('/backups');
    expect(html).toContain(name);
    for (const no of ['/proof"', '/permanent"', '/archive"', 'Run now']) expect(html).not.toContain(no);
  });
});

describe('the emergency sheet', () => {
  it('has the address, the place, the key by name, the command, the release and the CA; the secret nowhere', async () => {
    const html = await (await at('vera')).page(SHEET);
    const text = textOf(html);
    const restore = `./scripts/start.sh --embedded --data NEW --restore ${name} --passphrase-file FILE`;
    const { fingerprint } = await deps.coreAuthority.certificate();
    for (const part of ['/mnt/backups', 'BACKUP_PASSPHRASE', restore, '1.2.3', 'https://cot.example.org', fingerprint])
      expect(text).toContain(part);
    expect(text).toContain('Printed 2026-03-04 05:06');
    expect(html).not.toContain(PASSPHRASE);
  });

  it('is the same from the terminal', async () => {
    const sheet = (await answerOperator(deps as unknown as OperatorDeps, { ask: 'emergency-sheet' })) as EmergencySheet;
    const text = sheetText(sheet);
    expect(text).toContain(`     ./scripts/start.sh --embedded --data NEW --restore ${name} --passphrase-file FILE\n`);
    expect(text).toContain('EMERGENCY SHEET: cot.example.org\n================================\n');
    expect(text).not.toContain(PASSPHRASE);
    expect(text.split('\n').length).toBeLessThan(60);
  });

  it('speaks of the private key with a recipient, and of setup.sh in containers', async () => {
    const keys = { BACKUP_S3_ACCESS_KEY: 'access-key', BACKUP_S3_SECRET_KEY: 'secret-key' };
    deps = fakeDeps({ BACKUP_TARGET: 's3://bucket/x', BACKUP_RECIPIENT: RECIPIENT, ...keys }, around);
    around.wanted.container = { proxyAddress: undefined, proxyPort: 443 };
    const text = textOf(await (await at()).page(SHEET));
    expect(text).toContain(`./scripts/setup.sh --restore ${name} --identity-file FILE`);
    expect(text).toContain('AGE-SECRET-KEY');
    expect(text).not.toContain('secret-key');
    deps.settings = { ...deps.settings, CORE_RELEASE: '5.7-RELEASE-8' };
    const command = `./scripts/setup.sh takserver-docker-5.7-RELEASE-8.zip --restore ${name} --identity-file FILE`;
    expect(textOf(await (await at()).page(SHEET))).toContain(command);
  });

  it('is there while service and core are down, and says what it could not find out', async () => {
    around.backups.error = new AppError('unavailable', 'The backup service refused the connection.');
    deps.coreAuthority.certificate = () => Promise.reject(new AppError('unavailable', 'CORE_DATA_DIR is not set.'));
    const text = textOf(await (await at()).page(SHEET));
    for (const part of ['/mnt/backups', 'refused the connection', 'CORE_DATA_DIR is not set', '--restore FILE'])
      expect(text).toContain(part);
  });
});
