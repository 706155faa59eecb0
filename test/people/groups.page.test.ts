import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { UNGROUPED_GROUP } from '@holdfast/kit/names';
import { peopleVisit, textOf } from './people-visit.ts';

describe('the pages of groups', () => {
  it('list groups by their full names, with the name on devices and the direction', async () => {
    const { world, page } = await peopleVisit();
    for (const name of ['core_Blue', 'core_Blue_READ', 'core_Blue_WRITE'])
      await world.deps.identity.groups.create(name);
    const text = textOf(await page('/groups'));
    expect(text).toMatch(
      /core_Blue Blue send and receive core_Blue_READ Blue receive only core_Blue_WRITE Blue send only/,
    );
    expect(text).not.toContain('ROLE_ADMIN');
    expect(text).toContain('3 total');
  });

  it('say what to do when there is none', async () => {
    expect(await (await peopleVisit()).page('/groups')).toContain('Add the first group below.');
    const viewer = await (await peopleVisit({ username: 'vera' })).page('/groups');
    expect(viewer).toContain('No groups yet');
    expect(viewer).not.toContain('action="/groups"');
  });

  it('add a group, or say why not and keep the entered name', async () => {
    const { world, post, page } = await peopleVisit();
    const answer = await post('/groups', { name: 'Blue' });
    const group = await world.deps.identity.groups.named('core_Blue');
    expect(answer.headers.get('location')).toBe(`/groups/${group?.id}?done=created`);
    expect(await page(`/groups/${group?.id}?done=created`)).toContain('select the group');
    const taken = await post('/groups', { name: 'core_blue' });
    expect([taken.status, await taken.text()]).toEqual([409, expect.stringContaining('value="core_blue"')]);
    const wrong = await post('/groups', { name: '"><img src=x>' });
    const html = await wrong.text();
    expect(wrong.status).toBe(422);
    expect(html).toContain('id="name-fault"');
    expect(html).not.toContain('<img');
  });

  it('show members, without hidden accounts, in pages of fifty', async () => {
    const { world, page } = await peopleVisit();
    for (let at = 0; at < 52; at += 1)
      await world.account({ username: `p${String(at).padStart(2, '0')}`, groups: ['core_Blue'] });
    await world.account({ username: 'svc_relay', kind: 'service', groups: ['core_Blue'] });
    const path = `/groups/${(await world.deps.identity.groups.named('core_Blue'))?.id}`;
    const html = await page(path);
    expect([html.includes('>p49<'), html.includes('>p50<'), html.includes('svc_relay')]).toEqual([true, false, false]);
    expect(await page(`${path}?page=2`)).toContain('>p51<');
    expect(textOf(html)).toContain('52 people lose core_Blue.');
  });

  it('delete a group after naming the consequences', async () => {
    const { world, page, post } = await peopleVisit();
    const { id: ada } = await world.account({ username: 'ada', groups: ['core_Blue'] });
    const { id } = (await world.deps.identity.groups.named('core_Blue')) ?? { id: '' };
    expect(textOf(await page(`/groups/${id}`))).toContain('1 person loses core_Blue: ada. The account stays.');
    const answer = await post(`/groups/${id}/delete`);
    expect(answer.headers.get('location')).toBe('/groups?done=deleted');
    expect((await world.deps.identity.accounts.get(ada))?.groups).toMatchObject([{ name: UNGROUPED_GROUP }]);
    expect(await page('/groups?done=deleted')).toContain('Group deleted.');
    expect(await page(`/groups/${id}`, 404)).toContain('Open Groups to see all groups.');
    expect((await post(`/groups/${id}/delete`)).status).toBe(404);
  });

  it('do not show, let alone delete, a group that gives a role', async () => {
    const { world, page, post } = await peopleVisit();
    const { id } = (await world.deps.identity.groups.named(world.deps.settings.VIEWER_GROUP)) ?? { id: '' };
    await page(`/groups/${id}`, 404);
    expect((await post(`/groups/${id}/delete`)).status).toBe(404);
  });

  it('say what is missing while the identity provider is unavailable', async () => {
    const { world, page } = await peopleVisit();
    world.deps.identity.groups.list = async () => {
      throw new AppError('unavailable', 'The identity provider does not answer.');
    };
    expect(await page('/groups', 503)).toContain(
      'Couldn&#39;t load the groups. The identity provider does not answer.',
    );
  });
});
