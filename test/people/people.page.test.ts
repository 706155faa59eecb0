import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { peopleVisit, textOf, tickedIn } from './people-visit.ts';

const HOSTILE = '<script>alert(1)</script>"><img src=x>';
const inDays = (now: Date, days: number): number => Math.floor(now.getTime() / 1000) + days * 86_400;

describe('the page of people', () => {
  it('shows people with status, expiry, groups and role', async () => {
    const { world, page } = await peopleVisit();
    const soon = inDays(world.around.now, 1) - 1;
    await world.account({ username: 'ada', name: 'Ada Lindt', groups: ['core_A', 'core_B', 'core_C', 'core_D'] });
    await world.account({ username: 'ben', name: 'Ben', attributes: { app_expires: soon } });
    await world.account({ username: 'cleo', name: 'Cleo', attributes: { app_expires: soon - 2 * 86_400 } });
    const { id } = await world.account({ username: 'dora', name: '' });
    await world.deps.identity.accounts.change(id, { isActive: false });
    const text = textOf(await page('/people'));
    expect(text).toMatch(/Ada Lindt ada Active core_A core_B core_C and 1 more/);
    expect(text).toMatch(/Ben ben Expires soon until \d{4}-\d\d-\d\d \d\d:\d\d/);
    expect(text).toMatch(/Cleo cleo Expired/);
    expect(text).toMatch(/dora dora Deactivated/);
    expect(text).toMatch(/vera vera Active Viewer/);
    expect(text).not.toContain('svc_');
  });

  it('searches name, username and email, and offers to add a person under the searched name', async () => {
    const { world, page } = await peopleVisit();
    await world.account({ username: 'ada', name: 'Ada Lindt', email: 'lind@example.org' });
    for (const search of ['LINDT', 'ada', 'lind@']) {
      const html = await page(`/people?search=${encodeURIComponent(search)}`);
      expect([html.includes('Ada Lindt'), html.includes('>vera<')]).toEqual([true, false]);
    }
    const html = await page('/people?search=Zo%C3%AB%20M%C3%BCller');
    expect(html).toContain('No people match “Zoë Müller”.');
    const path = /href="(\/people\/new\?name=[^"]+)"/.exec(html)?.[1] ?? '';
    const form = await page(path);
    expect(form).toContain('value="Zoë Müller"');
    expect(form).toContain('value="zoe.muller"');
  });

  it('is filtered by the identity provider', async () => {
    const { world, page } = await peopleVisit();
    await world.account({ username: 'ada', attributes: { app_expires: inDays(world.around.now, 3) } });
    await world.account({ username: 'late', attributes: { app_expires: inDays(world.around.now, 30) } });
    const { id } = await world.account({ username: 'gone' });
    await world.deps.identity.accounts.change(id, { isActive: false });
    const shown = async (path: string): Promise<string[]> =>
      [...(await page(path)).matchAll(/user">(?:<!-- -->)?(\w+)</g)].map(([, name = '']) => name);
    expect(await shown('/people?show=ending')).toEqual(['ada']);
    expect(await shown('/people?show=deactivated')).toEqual(['gone']);
    expect(await shown('/people?show=active')).toEqual(['ada', 'late', 'nora', 'vera', 'webadmin']);
    expect(await shown('/people?show=constructor')).toHaveLength(6);
  });

  it('has pages of fifty, and one beyond the last that leads back', async () => {
    const { world, page } = await peopleVisit();
    for (let at = 0; at < 60; at += 1) await world.account({ username: `p${String(at).padStart(2, '0')}` });
    const html = await page('/people?search=p');
    expect(html).toContain('1 to 50 of 60');
    expect(html).toContain('href="/people?search=p&amp;page=2"');
    expect(await page('/people?search=p&page=9')).toContain('href="/people?search=p&amp;page=2"');
  });

  it('shows service and hidden accounts on request, only in the console', async () => {
    const atConsole = await peopleVisit();
    await atConsole.world.account({ username: 'svc_relay', kind: 'service' });
    expect(await atConsole.page('/people')).not.toContain('svc_relay');
    expect(await atConsole.page('/people?include=hidden')).toContain('svc_relay');
    const path = await atConsole.pathOf('svc_relay');
    expect(textOf(await atConsole.page(path))).toContain('belongs to a program or the stack');
    expect(await atConsole.page(path)).not.toContain(`action="${path}/`);
    expect((await atConsole.post(`${path}/deactivate`)).status).toBe(404);

    const atPortal = await peopleVisit({ face: 'portal' });
    await atPortal.world.account({ username: 'svc_relay', kind: 'service' });
    for (const place of ['/people', '/people?include=hidden', '/people?include=hidden&search=svc'])
      expect(await atPortal.page(place)).not.toContain('svc_relay');
    await atPortal.page(await atPortal.pathOf('svc_relay'), 404);
  });

  it('offers a viewer no actions of administrators', async () => {
    const { page, pathOf } = await peopleVisit({ username: 'vera' });
    expect(await page('/people?search=zed')).not.toContain('/people/new');
    const html = await page(await pathOf('nora'));
    expect(html).not.toMatch(/<form method="post" action="\/people/);
    expect(textOf(html)).toContain('Role Member: manages own devices');
  });

  it('says what is missing while the identity provider is unavailable', async () => {
    const { world, page } = await peopleVisit();
    world.deps.identity.accounts.list = async () => {
      throw new AppError('unavailable', 'The identity provider does not answer.');
    };
    const html = await page('/people', 503);
    expect(html).toContain('Couldn&#39;t load the list. The identity provider does not answer.');
    expect(html).toContain('role="search"');
  });
});

describe('adding a person', () => {
  it('adds a person with groups, a new group and an expiry, and leads to the device', async () => {
    const { world, post, page } = await peopleVisit();
    await world.deps.identity.groups.create('core_Blue');
    const answer = await post('/people/new', {
      name: 'Ann Example',
      username: 'ann',
      groups: ['core_Blue'],
      new_group: 'Night Watch',
      ends: 'days-2',
      email: 'ann@example.org',
    });
    const ann = await world.named('ann');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `/people/${ann.id}?done=created`]);
    expect(ann.groups.map(({ name }) => name).toSorted()).toEqual(['core_Blue', 'core_Night Watch']);
    // To the minute, as it was offered.
    expect(ann.attributes).toEqual({ app_expires: Math.floor(inDays(world.around.now, 2) / 60) * 60 });
    const html = await page(`/people/${ann.id}?done=created`);
    expect(html).toContain('Person added. Next, add a device.');
    expect(html).toContain(`href="/people/${ann.id}/enrollment"`);
  });

  it('leads to the code on request', async () => {
    const { world, post, page } = await peopleVisit();
    world.deps.settings = { ...world.deps.settings, SERVER_ADDRESS: 'cot.example.org' };
    const answer = await post('/people/new', { name: 'Ann', username: 'ann', ends: 'never', next: 'code' });
    const { id } = await world.named('ann');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `/people/${id}/enrollment?done=created`]);
    const html = await page(`/people/${id}/enrollment?done=created`);
    expect(html).toContain('Person added.');
    expect(html).toContain('QR code to scan with ATAK');
  });

  it('adds the person also when no code can be created, and offers it again', async () => {
    const { world, post, page } = await peopleVisit();
    world.deps.coreAuthority.certificate = () => Promise.reject(new AppError('unavailable', 'The CA is away.'));
    const answer = await post('/people/new', { name: 'Ann', username: 'ann', ends: 'never', next: 'code' });
    expect(answer.status).toBe(303);
    const html = await page(answer.headers.get('location') ?? '');
    expect(html).toContain('The CA is away.');
    expect(html).toContain('Create code');
  });

  it('suggests a missing username, and keeps the entered values', async () => {
    const { world, post } = await peopleVisit();
    await world.deps.identity.groups.create('core_Blue');
    const answer = await post('/people/new', { name: 'Jörg Groß', groups: ['core_Blue'], ends: 'days-7' });
    const html = await answer.text();
    expect(answer.status).toBe(422);
    expect(html).toContain('value="jorg.gross"');
    expect(html).toContain('value="Jörg Groß"');
    expect(tickedIn(html)).toEqual(['core_Blue']);
    expect(html).toMatch(/<option value="days-7" selected/);
  });

  it('shows all errors beside their fields, and adds nothing', async () => {
    const { world, post } = await peopleVisit();
    const answer = await post('/people/new', {
      name: 'x',
      username: 'svc_x',
      email: 'nowhere',
      ends: 'date',
      on: '2020-01-01T10:00',
      new_group: 'a/b',
    });
    const html = await answer.text();
    expect(answer.status).toBe(422);
    for (const field of ['username', 'email', 'ends', 'new_group']) expect(html).toContain(`id="${field}-fault"`);
    expect(html).toContain('2020-01-01 10:00 is in the past. Choose a later time.');
    expect(await world.deps.identity.groups.list('core_a')).toEqual([]);
    expect(await world.deps.identity.accounts.named('svc_x')).toBeUndefined();
  });

  it('says that a username is taken, and adds no group for a refused person', async () => {
    const { world, post } = await peopleVisit();
    const answer = await post('/people/new', { name: 'V', username: 'VERA', new_group: 'Green', ends: 'never' });
    const html = await answer.text();
    expect(answer.status).toBe(409);
    expect(html).toContain('Username VERA is already taken');
    expect(html).toMatch(/name="new_group"[^>]* value="Green"|value="Green"[^>]* name="new_group"/);
    const unknown = { name: 'W', username: 'w', groups: 'core_gone', new_group: 'Green', ends: 'never' };
    expect((await post('/people/new', unknown)).status).toBe(422);
    expect(await world.deps.identity.groups.list('core_Green')).toEqual([]);
    await world.deps.identity.groups.create('core_Green');
    expect(
      (await post('/people/new', { name: 'W', username: 'w', new_group: 'core_green', ends: 'never' })).status,
    ).toBe(303);
  });

  it('selects the group that was added before the person was refused', async () => {
    const { world, post } = await peopleVisit();
    world.deps.identity.accounts.create = () => Promise.reject(new AppError('unavailable', 'It does not answer.'));
    const answer = await post('/people/new', { name: 'W', username: 'w', new_group: 'Green', ends: 'never' });
    expect(answer.status).toBe(503);
    expect(tickedIn(await answer.text())).toEqual(['core_Green']);
  });

  it('shows hostile names as text', async () => {
    const { world, page, post } = await peopleVisit();
    await world.account({ username: 'eve', name: HOSTILE, groups: ['core_"quoted" \'group\' <b>'] });
    const { id } = await world.named('eve');
    const places = [
      '/people',
      `/people/${id}`,
      '/people/new',
      '/groups',
      `/people?search=${encodeURIComponent(HOSTILE)}`,
    ];
    const pages = await Promise.all(places.map((place) => page(place)));
    const again = await post('/people/new', {
      name: HOSTILE,
      username: HOSTILE,
      email: HOSTILE,
      new_group: HOSTILE,
      on: HOSTILE,
    });
    for (const html of [...pages, await again.text()]) {
      expect(html).not.toMatch(/<script>alert|<img src=x|<b>/);
      expect(html).not.toContain('"quoted"');
    }
  });
});
