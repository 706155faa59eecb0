// Adding a device of one's own: the page of the administrators, for oneself alone.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { visit, type Visitor } from '../pages/page-session.ts';
import { peopleWorld } from '../people/fake-people.ts';

async function portal(username = 'nora'): Promise<Visitor> {
  const people = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org' });
  if (username !== 'nora') await people.person(username);
  return visit({ username, face: 'portal', deps: people.deps, around: people.around });
}

describe('adding a device of one’s own', () => {
  it('shows no code before it is asked for, then one for whoever is signed in', async () => {
    const visitor = await portal();
    expect(await visitor.page('/add-device')).toContain('No code is valid now');
    const answer = await visitor.post('/add-device');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/add-device']);
    const html = await visitor.page('/add-device');
    expect(html).toMatch(/tak:\/\/com\.atakmap\.app\/enroll\?host=cot\.example\.org&amp;username=nora&amp;token=/);
    expect(await visitor.deps.identity.appPasswords.list('nora')).toHaveLength(1);
    expect(await visitor.deps.identity.appPasswords.list('vera')).toEqual([]);
  });

  it('says when the device has come, and when it is connected', async () => {
    const visitor = await portal();
    await visitor.post('/add-device');
    const tag = (await visitor.get('/add-device/progress')).headers.get('etag');
    visitor.deps.theCore.enrolledByDevice('nora', 'ANDROID-nora');
    expect((await visitor.get('/add-device/progress')).headers.get('etag')).not.toBe(tag);
    expect(await visitor.page('/add-device')).toContain('Device enrolled: ANDROID-nora');
    Object.assign(visitor.deps.theCore.online('nora', 'ANDROID-nora'), { callsign: 'NORA 1' });
    expect(await visitor.page('/add-device')).toContain('Connected as NORA 1');
  });

  it('takes the code back', async () => {
    const visitor = await portal();
    await visitor.post('/add-device');
    const answer = await visitor.post('/add-device/withdraw');
    expect(answer.headers.get('location')).toBe('/add-device?done=canceled');
    expect(await visitor.deps.identity.appPasswords.list('nora')).toEqual([]);
  });

  it('is refused to an account of the stack, with the way out, and makes nothing for it', async () => {
    const visitor = await portal('svc_gate');
    const html = await visitor.page('/add-device', 404);
    expect(html).toContain('svc_gate is an account of the stack, not of a person: it enrolls no devices.');
    expect((await visitor.post('/add-device')).status).toBe(404);
    expect(await visitor.deps.identity.appPasswords.list('svc_gate')).toEqual([]);
  });

  it('says that nobody can be let in while the identity provider is away', async () => {
    const visitor = await portal();
    visitor.deps.identity.accounts.named = () => Promise.reject(new AppError('unavailable', 'It does not answer.'));
    expect(await visitor.page('/add-device', 503)).toContain('Nobody can be let in now: It does not answer.');
  });
});
