// Tests the enrollment page: code, access, secrecy, progress and checks.

import { beforeEach, describe, expect, it } from 'vitest';
import { toPageText } from '../../functions/pages/enrollment/diagnosis-card.tsx';
import { diagnoseEnrollment } from '../../shared/devices/enrollment/diagnose.ts';
import type { Account } from '../../shared/identity/port.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const SETTINGS = { SERVER_ADDRESS: 'cot.example.org', ENROLLMENT_TTL_MINUTES: '15' };

let world: PeopleWorld;
let ada: Account;
let admin: Visitor;
let path: string;
beforeEach(async () => {
  world = await peopleWorld(SETTINGS);
  ada = await world.person('ada', ['core_Team']);
  admin = await visit({ deps: world.deps, around: world.around });
  path = `/people/${ada.id}/enrollment`;
});

const secret = async (): Promise<string> => {
  const [password] = await world.deps.identity.appPasswords.list('ada');
  return (await world.deps.identity.appPasswords.reveal(password?.identifier ?? '')) ?? '';
};
const issue = async (): Promise<void> => {
  const answer = await admin.post(path);
  expect([answer.status, answer.headers.get('location')]).toEqual([303, path]);
};

describe('the page that enrolls devices', () => {
  it('creates no code when it is opened', async () => {
    const html = await admin.page(path);
    expect(html).toContain('No active code');
    expect(html).toContain('Create code');
    expect(await world.deps.identity.appPasswords.list('ada')).toEqual([]);
  });

  it('shows the code that a form has made, with link, name and password, and gives the same again', async () => {
    await issue();
    const key = await secret();
    const html = await admin.page(path);
    expect(html).toContain(
      `href="tak://com.atakmap.app/enroll?host=cot.example.org&amp;username=ada&amp;token=${key}"`,
    );
    expect(html).toMatch(/<div class="qr" role="img" aria-label="QR code to scan with ATAK"><svg /);
    expect(html).toContain('15 minutes left');
    expect(html).toContain(`href="/api/users/${ada.id}/enrollment/package?app=atak"`);
    expect(html).toContain('CA:01');
    await issue();
    expect(await secret()).toBe(key);
  });

  it('has the secret in no address, no title, no log and no audit record, and nothing keeps the page', async () => {
    await issue();
    const key = await secret();
    const answer = await admin.get(path);
    const html = await answer.text();
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(/<title>[^<]*<\/title>/.exec(html)?.[0]).not.toContain(key);
    expect(html.match(/aria-label="[^"]*"/g)?.join('')).not.toContain(key);
    const links = [...html.matchAll(/(?:href|action|data-live)="(?!tak:)([^"]*)"/g)].map(([, link]) => link);
    expect(links.join('\n')).not.toContain(key);
    expect(JSON.stringify([world.deps.log.events, world.deps.audit.records])).not.toContain(key);
  });

  it('shows one large code, of the app that was chosen', async () => {
    await issue();
    const [atak, itak, aware, wintak] = await Promise.all(
      ['atak', 'itak', 'takaware', 'wintak'].map((app) => admin.page(`${path}?app=${app}`)),
    );
    expect([atak, itak, aware, wintak].map((html = '') => html.match(/class="qr"/g)?.length ?? 0)).toEqual([
      1, 1, 1, 0,
    ]);
    expect(itak).toContain('iTAK asks for a username and password');
    expect(itak).toContain('enrollment/package?app=itak');
    expect(wintak).toContain('WinTAK asks for a username and password');
    expect(aware).not.toContain('tak://');
    expect(await admin.page(`${path}?app=%22%3E%3Cscript%3E`)).toContain('QR code to scan with ATAK');
  });

  it('offers no package first when devices trust the server without it', async () => {
    await issue();
    world.deps.settings = { ...world.deps.settings, DEPLOY_MODE: 'subdomain' };
    expect(await admin.page(path)).not.toContain('Data package');
    expect(await admin.page(`${path}?app=wintak`)).toContain('Data package');
  });

  it('cancels the enrollment', async () => {
    await issue();
    const answer = await admin.post(`${path}/withdraw`);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `${path}?done=canceled`]);
    const html = await admin.page(`${path}?done=canceled`);
    expect(html).toContain('Enrollment canceled. Devices that have already enrolled stay connected.');
    expect(html).toContain('No active code');
    expect(await world.deps.identity.appPasswords.list('ada')).toEqual([]);
  });

  it('says why it creates no code for an inactive person, or without an address', async () => {
    await world.deps.identity.accounts.change(ada.id, { isActive: false });
    const answer = await admin.post(path);
    expect(answer.status).toBe(409);
    expect(await answer.text()).toContain('ada is not active, so nothing was issued. Reactivate the user first.');
    world.deps.settings = { ...world.deps.settings, SERVER_ADDRESS: undefined };
    expect(await (await admin.post(path)).text()).toContain('Remedy: set SERVER_ADDRESS.');
  });

  it('stops polling when the code expires', async () => {
    await issue();
    world.around.now = new Date(world.around.now.getTime() + 15 * 60_000);
    const html = await admin.page(path);
    expect(html).toContain('No active code');
    expect(html).toContain('No device enrolled with this code.');
    expect(html).not.toContain('data-live');
  });

  it('is 404 for nobody and for hidden accounts, and shows names as text', async () => {
    expect((await admin.get('/people/999/enrollment')).status).toBe(404);
    expect((await admin.get('/people/x/enrollment')).status).toBe(404);
    world.deps.theCore.enrolledByDevice('ada', 'x');
    await issue();
    world.deps.theCore.enrolledByDevice('ada', '"><script>alert(1)</script>');
    const html = await admin.page(path);
    expect(html).toContain('&lt;script&gt;alert(1)');
    expect(html).not.toContain('<script>alert');
  });

  it('works without the core, and says what is missing', async () => {
    await issue();
    world.deps.theCore.mood = 'down';
    const html = await admin.page(path);
    expect(html).toContain('Couldn&#39;t check for enrolled devices. The core does not answer');
    expect(html).toContain('class="qr"');
  });
});

describe('while it waits for a device', () => {
  const tagOf = (html: string): string => /data-tag="([^"]*)"/.exec(html)?.[1]?.replaceAll('&quot;', '"') ?? '';
  const isNews = async (tag: string): Promise<boolean> => {
    const answer = await admin.get(`${path}/progress`, { 'if-none-match': tag });
    expect([200, 304]).toContain(answer.status);
    return answer.status === 200;
  };

  it('polls the progress, which changes only when something is new', async () => {
    await issue();
    const html = await admin.page(path);
    expect(html).toContain('Waiting for the device…');
    expect(html).toContain(`data-live="${path}/progress" data-every="3"`);
    expect(await isNews(tagOf(html))).toBe(false);
    const before = world.deps.theCore.calls;
    await isNews(tagOf(html));
    expect(world.deps.theCore.calls - before).toBe(3);
  });

  it('says that the device has enrolled, then that it is connected, then that it is revoked', async () => {
    world.deps.theCore.enrolledByDevice('ada', 'OLD');
    world.around.now = new Date(world.around.now.getTime() + 60_000);
    await issue();
    const waiting = await admin.page(path);
    const { hash } = world.deps.theCore.enrolledByDevice('ada', 'ANDROID-7');
    expect(await isNews(tagOf(waiting))).toBe(true);
    const enrolled = await admin.page(path);
    expect(enrolled).toContain('<strong>Device enrolled: ANDROID-7</strong>. Not connected yet.');
    expect(enrolled).not.toContain('OLD');
    world.deps.theCore.online('ada', 'ANDROID-7').callsign = 'ALPHA 1';
    expect(await isNews(tagOf(enrolled))).toBe(true);
    const connected = await admin.page(path);
    expect(connected).toContain('<strong>Connected as ALPHA 1</strong> since');
    expect(await isNews(tagOf(connected))).toBe(false);
    await world.deps.core.revoke(hash);
    expect(await admin.page(path)).toContain('ANDROID-7 enrolled and was revoked at');
  });

  it('shows no device of another person', async () => {
    await issue();
    world.deps.theCore.enrolledByDevice('ada-doe', 'OTHER');
    world.deps.theCore.online('bob', 'ANDROID-7');
    world.deps.theCore.enrolledByDevice('ada', 'ANDROID-7');
    const html = await admin.page(path);
    expect(html).not.toContain('OTHER');
    expect(html).toContain('Not connected yet');
  });

  it('shows why a device was refused, and the check, without a request', async () => {
    await issue();
    const at = world.around.now.toISOString();
    world.deps.theCore.attempts = [
      {
        at,
        address: '192.0.2.50',
        username: 'ada',
        clientUid: 'A',
        result: 'refused',
        reason: 'The password is wrong.',
      },
    ];
    const html = await admin.page(path);
    expect(html).toContain('A device was refused');
    expect(html).toContain('The password is wrong.');
    expect(html).toContain('Recent attempts');
  });

  it('shows why the stream refused a device that has enrolled, until one is connected', async () => {
    await issue();
    world.deps.theCore.enrolledByDevice('ada', 'ANDROID-7');
    const at = world.around.now.toISOString();
    const reason = 'the account is not active';
    world.deps.theCore.attempts = [
      { at, address: '192.0.2.50', username: 'ada', clientUid: '', result: 'not connected', reason },
    ];
    const refused = await admin.page(path);
    expect(refused).toContain('A device was refused');
    expect(refused).toContain(`Connection refused: ${reason}`);
    world.deps.theCore.online('ada', 'ANDROID-7');
    expect(await admin.page(path)).not.toContain('A device was refused');
  });
});

describe('the diagnosis on the page', () => {
  it('runs on request', async () => {
    await issue();
    expect(await admin.page(path)).not.toContain('Enrollment port.');
    const html = await admin.page(`${path}?check=1`);
    for (const stage of ['Account.', 'Server name.', 'Enrollment port.', 'Code.', 'Signing.'])
      expect(html).toContain(`<strong>${stage}</strong>`);
  });

  it('names pages instead of API routes, with times in the zone of the stack', async () => {
    const zone = { timeZone: 'Europe/Berlin' };
    const says = (text: string): string => toPageText(text, zone);
    expect([
      says('Issue a new code: POST /api/users/7/enrollment, and scan it.'),
      says('Ask an administrator to reactivate the user (PATCH /api/users/7 with is_active true).'),
      says('Check GET /api/health/identity, and try again when all services answer.'),
      says('See that the core runs (GET /api/health/tls, GET /api/health), that it listens.'),
      says('Put the user into a channel before devices enroll (PUT /api/users/7/groups).'),
      says('The enrollment expired at 2026-03-04T23:06:07.000Z.'),
    ]).toEqual([
      'Create a new code and scan it.',
      'Ask an administrator to reactivate the user.',
      'See identity on the overview, then try again when all services answer.',
      'See that the core runs, that it listens.',
      'Put the user into a channel before devices enroll.',
      'The enrollment expired at 2026-03-05 00:06.',
    ]);
  });

  it('names no API route in any finding', async () => {
    const seen: string[] = [];
    const look = async (): Promise<void> => {
      const found = await diagnoseEnrollment(world.deps, ada);
      for (const text of [found.reason, found.remedy, ...found.checks.map(({ detail }) => detail), ...found.notes])
        seen.push(toPageText(text ?? '', world.deps));
    };
    for (const address of ['cot.example.org', '127.0.0.1', undefined]) {
      world.deps.settings = { ...world.deps.settings, SERVER_ADDRESS: address };
      await look();
    }
    world.deps.theCore.ca = 'CA:02';
    await look();
    world.deps.theCore.mood = 'down';
    await look();
    await world.deps.identity.accounts.change(ada.id, { isActive: false });
    ada = await world.named('ada');
    await look();
    expect(seen.filter((text) => /\/api\/|is_active|expires_at/.test(text))).toEqual([]);
  });
});
