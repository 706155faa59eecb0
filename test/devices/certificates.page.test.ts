// Tests the pages about certificates: search, details, files, revocation and its confirmation.

import { beforeEach, describe, expect, it } from 'vitest';
import type { CoreCertificate } from '../../shared/core/port.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
let admin: Visitor;
beforeEach(async () => {
  world = await peopleWorld();
  await world.person('ada', ['core_Team']);
  admin = await visit({ deps: world.deps, around: world.around });
  const at = world.around.now.toISOString();
  const coreStartedAt = world.deps.theCore.status.startedAt;
  await world.deps.certificateStore.recordCanary({ at, ok: true, signed: true, problem: null, coreStartedAt });
});

const pathOf = ({ hash }: CoreCertificate): string => `/certificates/${hash.replaceAll(':', '').toLowerCase()}`;
const names = (html: string): string[] =>
  [...html.matchAll(/rowheader"><a href="[^"]*">([^<]*)</g)].map(([, name = '']) => name);
const enrolled = (uid: string, username = 'ada'): CoreCertificate => world.deps.theCore.enrolledByDevice(username, uid);

describe('GET /certificates', () => {
  it('shows those in force, what ends first comes first', async () => {
    enrolled('LATE');
    world.deps.theCore.validityDays = 10;
    enrolled('SOON');
    world.deps.theCore.validityDays = 5;
    await world.deps.core.revoke(enrolled('GONE').hash);
    expect(names(await admin.page('/certificates'))).toEqual(['SOON', 'LATE']);
    expect(names(await admin.page('/certificates?status=revoked'))).toEqual(['GONE']);
    expect(names(await admin.page('/certificates?status=all'))).toEqual(['GONE', 'SOON', 'LATE']);
  });

  it('finds by a part of the person, the device, the serial number or the hash', async () => {
    const { serial, hash } = enrolled('ANDROID-1', 'nina');
    enrolled('OTHER', 'bob');
    for (const text of ['NIN', 'roid-1', serial.slice(3, 14), hash.slice(0, 14).toLowerCase()])
      expect(names(await admin.page(`/certificates?search=${encodeURIComponent(text)}`))).toEqual(['ANDROID-1']);
    const none = await admin.page('/certificates?search=%3Cb%3E');
    expect(none).toContain('certificates match “&lt;b&gt;”');
  });

  it('says what to do when there is none, and gives pages of fifty', async () => {
    expect(await admin.page('/certificates')).toContain('A device gets a certificate when it enrolls');
    for (let at = 0; at < 60; at++) enrolled(`N${at}`);
    expect(names(await admin.page('/certificates?page=2'))).toHaveLength(10);
  });

  it('knows whose access ends first, without a question per row', async () => {
    const { accounts } = world.deps.identity;
    let questions = 0;
    const named = accounts.named.bind(accounts);
    accounts.named = (username) => {
      questions += 1;
      return named(username);
    };
    const soon = Math.floor(world.around.now.getTime() / 1000) + 86_400;
    await world.account({ username: 'Bob', attributes: { app_expires: soon } });
    for (const name of ['ada', 'bob', 'cem', 'dan']) enrolled(name, name);
    questions = 0;
    const html = await admin.page('/certificates');
    expect(html.match(/in 1 day</g)).toHaveLength(1);
    expect(questions).toBe(0);
  });

  it('offers no revocation to viewers, nor of the certificate that Holdfast itself uses', async () => {
    enrolled('ANDROID-1');
    enrolled('svc_api', 'svc_api');
    expect((await admin.page('/certificates')).match(/Revoke…/g)).toHaveLength(1);
    const viewer = await visit({ deps: world.deps, around: world.around, username: 'vera' });
    expect(await viewer.page('/certificates')).not.toContain('Revoke…');
  });

  it('shows what is written down while the core is away, and that this is not all', async () => {
    await admin.post('/certificates/new', { username: 'ada', name: 'laptop' });
    enrolled('ANDROID-1');
    world.deps.theCore.mood = 'down';
    const html = await admin.page('/certificates');
    expect(names(html)).toEqual(['laptop']);
    expect(html).toContain('The core does not answer');
  });

  it('has CA and revocation list with their files', async () => {
    const html = await admin.page('/certificates');
    expect(html).toContain('CA:01');
    for (const file of ['ca.pem', 'crl.pem']) {
      const answer = await admin.get(`/certificates/${file}`);
      expect([answer.status, answer.headers.get('content-disposition')]).toEqual([
        200,
        `attachment; filename="cot.example.org-${file}"`,
      ]);
      expect(await answer.text()).toMatch(/^-----BEGIN/);
    }
  });
});

describe('GET /certificates/{file}', () => {
  it('shows the certificate, by its hash or its file', async () => {
    const certificate = enrolled('"><script>alert(1)</script>');
    const html = await admin.page(pathOf(certificate));
    for (const text of ['Enrolled by device', 'Active', certificate.serial, certificate.hash, '&lt;script&gt;alert(1)'])
      expect(html).toContain(text);
    expect(html).not.toMatch(/<script>alert|Files|data-live/);
    expect((await admin.get('/certificates/none')).status).toBe(404);
  });

  it('shows that the access of its person expires first', async () => {
    const certificate = enrolled('A', 'bob');
    const soon = Math.floor(world.around.now.getTime() / 1000) + 86_400;
    await world.account({ username: 'bob', attributes: { app_expires: soon } });
    expect(await admin.page(pathOf(certificate))).toContain('access expires');
  });

  it('in the portal is for administrators, and leads back to people', async () => {
    const certificate = enrolled('A');
    const portal = await visit({ deps: world.deps, around: world.around, face: 'portal' });
    expect(await portal.page(pathOf(certificate))).toContain('href="/people" aria-current="page"');
    const ada = await visit({ deps: world.deps, around: world.around, face: 'portal', username: 'ada' });
    expect((await ada.get(pathOf(certificate))).status).toBe(403);
  });
});

describe('revoking on a page', () => {
  it('returns to the previous page with the result, and only to a path of ours', async () => {
    const from = async (uid: string, path: string): Promise<string | null> =>
      (await admin.post(`${pathOf(enrolled(uid))}/revoke`, { from: path })).headers.get('location');
    expect(await from('A', '/people/7?x=1#devices')).toBe('/people/7?x=1&done=revoked#devices');
    expect(await from('B', 'https://evil.example/')).toBe('/?done=revoked');
    expect(world.deps.theCore.certificates.every(({ revokedAt }) => revokedAt !== null)).toBe(true);
  });

  it('shows each step, and what it waits for, until the revocation is confirmed', async () => {
    world.deps.theCore.writesList = false;
    const certificate = enrolled('A');
    const answer = await admin.post(`${pathOf(certificate)}/revoke`);
    expect(answer.headers.get('location')).toBe(`${pathOf(certificate)}?done=revoking`);
    const html = await admin.page(pathOf(certificate));
    expect(html).toContain('Waiting for confirmation');
    expect(html).toContain('The revocation list doesn&#39;t contain this certificate');
    expect(html).toContain('Waiting for: ');
    expect(html).toMatch(/id="certificate" data-live="self"/);
  });

  it('shows what contradicts the revocation', async () => {
    const certificate = enrolled('A');
    await admin.post(`${pathOf(certificate)}/revoke`);
    const { certificateStore, now } = world.deps;
    const other = enrolled('B');
    await certificateStore.wantRevoked([other], now().toISOString());
    const problem = 'The stream accepted a new connection with this certificate.';
    const settled = { state: 'revocation_failed', checkedAt: now().toISOString(), problem, streams: null } as const;
    await certificateStore.settle(other.hash, settled);
    const html = await admin.page(pathOf(other));
    expect(html).toContain('Revocation not confirmed: treat the device as connected');
    expect(html).toContain(`Problem: ${problem}`);
    const proven = await admin.page(pathOf(certificate));
    expect(proven).toContain('Revocation confirmed');
    expect(proven).not.toMatch(/data-live|>Pending</);
  });

  it('refuses to revoke the certificate that Holdfast itself uses, and says why', async () => {
    const answer = await admin.post(`${pathOf(enrolled('svc_api', 'svc_api'))}/revoke`);
    expect(answer.status).toBe(409);
    expect(await answer.text()).toContain('Holdfast itself uses the certificate of svc_api');
  });
});

describe('issuing by hand', () => {
  it('leads to the certificate with its files and their password', async () => {
    const answer = await admin.post('/certificates/new', { username: 'ada', name: 'laptop' });
    expect(answer.status).toBe(303);
    const html = await admin.page(answer.headers.get('location') ?? '');
    expect(html).toContain('Certificate issued. Download its files below.');
    expect(html).toContain('<code>atakatak</code>');
    const file = /href="(\/api\/ops\/certs\/[^"]*format=p12)"/.exec(html)?.[1] ?? '';
    expect((await admin.get(file)).status).toBe(200);
  });

  it('shows the form again with the entered values and the error beside the field', async () => {
    const answer = await admin.post('/certificates/new', { username: '<b>', name: 'a b' });
    const html = await answer.text();
    expect(answer.status).toBe(422);
    expect(html).toContain('value="a b"');
    expect(html).toContain('value="&lt;b&gt;"');
    expect(html).toContain('aria-invalid="true"');
    expect((await admin.post('/certificates/new', { username: 'ada', name: 'x' })).status).toBe(303);
    expect((await admin.post('/certificates/new', { username: 'ada', name: 'x' })).status).toBe(409);
  });

  it('offers the file once when keys are not stored', async () => {
    world.deps.settings = { ...world.deps.settings, KEEP_CLIENT_KEYS: false };
    const answer = await admin.post('/certificates/new', { username: 'ada', name: 'laptop' });
    const html = await answer.text();
    expect(answer.status).toBe(200);
    expect(html).toContain('It is offered only once');
    expect(html).toMatch(/href="data:application\/x-pkcs12;base64,[^"]+" download="ada~laptop.p12"/);
  });
});
