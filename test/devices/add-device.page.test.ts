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
  it('shows no code before it is created, then one for the signed-in person', async () => {
    const visitor = await portal();
    expect(await visitor.page('/add-device')).toContain('No active code');
    const answer = await visitor.post('/add-device');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/add-device']);
    const html = await visitor.page('/add-device');
    expect(html).toMatch(/tak:\/\/com\.atakmap\.app\/enroll\?host=cot\.example\.org&amp;username=nora&amp;token=/);
    expect(await visitor.deps.identity.appPasswords.list('nora')).toHaveLength(1);
    expect(await visitor.deps.identity.appPasswords.list('vera')).toEqual([]);
  });

  it('shows when the device has enrolled, and when it is connected', async () => {
    const visitor = await portal();
    await visitor.post('/add-device');
    const tag = (await visitor.get('/add-device/progress')).headers.get('etag');
    visitor.deps.theCore.enrolledByDevice('nora', 'ANDROID-nora');
    expect((await visitor.get('/add-device/progress')).headers.get('etag')).not.toBe(tag);
    expect(await visitor.page('/add-device')).toContain('Device enrolled: ANDROID-nora');
    Object.assign(visitor.deps.theCore.online('nora', 'ANDROID-nora'), { callsign: 'NORA 1' });
    expect(await visitor.page('/add-device')).toContain('Connected as NORA 1');
  });

  it('cancels the enrollment', async () => {
    const visitor = await portal();
    await visitor.post('/add-device');
    const answer = await visitor.post('/add-device/withdraw');
    expect(answer.headers.get('location')).toBe('/add-device?done=canceled');
    expect(await visitor.deps.identity.appPasswords.list('nora')).toEqual([]);
  });

  it('is refused to a system account, with the next step, and creates nothing for it', async () => {
    const visitor = await portal('svc_gate');
    const html = await visitor.page('/add-device', 404);
    expect(html).toContain('svc_gate is a system account and can&#39;t enroll devices.');
    expect((await visitor.post('/add-device')).status).toBe(404);
    expect(await visitor.deps.identity.appPasswords.list('svc_gate')).toEqual([]);
  });

  it('says that no device can be added while the identity provider is unavailable', async () => {
    const visitor = await portal();
    visitor.deps.identity.accounts.named = () => Promise.reject(new AppError('unavailable', 'It does not answer.'));
    expect(await visitor.page('/add-device', 503)).toContain('Couldn&#39;t add a device. It does not answer.');
  });
});
