import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { UNGROUPED_GROUP } from '@holdfast/kit/names';
import { peopleVisit, textOf, tickedIn } from './people-visit.ts';

/** With a person who is in a group, and her page. */
async function withAda(options: Parameters<typeof peopleVisit>[0] = {}) {
  const visitor = await peopleVisit(options);
  await visitor.world.account({ username: 'ada', name: 'Ada Lindt', email: 'ada@example.org', groups: ['core_Blue'] });
  for (const name of ['core_Red', 'core_Green']) await visitor.world.deps.identity.groups.create(name);
  return { ...visitor, path: await visitor.pathOf('ada'), ada: () => visitor.world.named('ada') };
}

const groupsOf = ({ groups }: { groups: { name: string }[] }): string[] => groups.map(({ name }) => name).toSorted();
const locationOf = (answer: Response): string | null => answer.headers.get('location');

describe('the page of a person', () => {
  it('shows the status of the account, and offers the next actions', async () => {
    const { world, path, page, ada } = await withAda();
    const html = await page(path);
    expect(textOf(html)).toContain('Active, with no expiry date.');
    expect(html).toContain(`href="${path}/enrollment"`);
    expect(html).toContain(`action="${path}/deactivate"`);
    const { id } = await ada();
    await world.deps.identity.accounts.changeAttributes(id, {
      app_expires: Math.floor(world.around.now.getTime() / 1000) + 90_000,
    });
    expect(textOf(await page(path))).toMatch(/Active until \d{4}-\d\d-\d\d \d\d:\d\d : 1 day 1 hour left/);
  });

  it('shows devices and certificates, each with its revocation', async () => {
    const { world, path, page } = await withAda();
    const { hash } = world.deps.theCore.enrolledByDevice('ada', 'ANDROID-7');
    world.deps.theCore.online('ada');
    const html = await page(path);
    expect(textOf(html)).toContain('Connected ADA');
    expect(html).toContain(`action="/certificates/${hash.replaceAll(':', '').toLowerCase()}/revoke"`);
    expect(textOf(html)).toContain('Every certificate is revoked (1 active) and connected devices are disconnected');
  });

  it('works while the core is unavailable, and says what is missing', async () => {
    const { world, path, page } = await withAda();
    world.deps.theCore.mood = 'down';
    const text = textOf(await page(path));
    expect(text).toContain("Couldn't load connections. The core does not answer");
    expect(text).toContain('it shows only certificates that Holdfast issued. The core does not answer');
  });

  it('answers 404 for an unknown person, in page terms', async () => {
    const { page } = await withAda();
    for (const id of ['99999', '0', 'new1', '%3Cb%3E'])
      expect(await page(`/people/${id}`, 404)).toContain('No person at this address.');
  });

  it('offers no impossible changes of the first administrator', async () => {
    const { page, pathOf, post } = await withAda();
    const path = await pathOf('webadmin');
    const html = await page(path);
    expect(textOf(html)).toContain("can't be demoted, deactivated or set to expire");
    for (const form of ['deactivate', 'role', 'expiry']) expect(html).not.toContain(`action="${path}/${form}"`);
    const answer = await post(`${path}/role`, { role: 'none' });
    expect([answer.status, await answer.text()]).toEqual([
      409,
      expect.stringContaining('webadmin is the first administrator and cannot be demoted'),
    ]);
  });
});

describe('a change of a person', () => {
  it('of name and email is saved, and errors are shown beside the field with the entered value', async () => {
    const { path, post, ada } = await withAda();
    expect(locationOf(await post(`${path}/details`, { name: 'Ada B', email: '' }))).toBe(`${path}?done=details`);
    expect(await ada()).toMatchObject({ name: 'Ada B', email: '' });
    const answer = await post(`${path}/details`, { name: '', email: 'no address' });
    const html = await answer.text();
    expect(answer.status).toBe(422);
    expect(html).toMatch(/<details class="unfold" id="details" open/);
    expect(html).toContain('id="name-fault"');
    expect(html).toContain('value="no address"');
  });

  it('of the email alone is saved whatever the name hides', async () => {
    const { world, page, post } = await withAda();
    const { id } = await world.account({ username: 'odd', name: 'Odd\u202Eeman' });
    const fields = { had_name: 'Odd\uFFFDeman', name: 'Odd\uFFFDeman', had_email: '', email: 'odd@example.org' };
    expect(await page(`/people/${id}`)).toContain('value="Odd\uFFFDeman"');
    expect((await post(`/people/${id}/details`, fields)).status).toBe(303);
    expect((await world.named('odd')).email).toBe('odd@example.org');
  });

  it('of groups replaces them, adds a new one, and reaches connected devices immediately', async () => {
    const { world, path, post, page, ada } = await withAda();
    const answer = await post(`${path}/groups`, { had: ['core_Blue'], groups: ['core_Red'], new_group: 'Night' });
    expect(locationOf(answer)).toBe(`${path}?done=groups`);
    expect(groupsOf(await ada())).toEqual(['core_Night', 'core_Red']);
    expect(world.deps.theCore.regrouped).toEqual(['ada']);
    expect(await page(`${path}?done=groups`)).toContain('within 75 seconds');
    await post(`${path}/groups`, { had: ['core_Night', 'core_Red'] });
    expect(groupsOf(await ada())).toEqual([UNGROUPED_GROUP]);
    expect(textOf(await page(path))).not.toContain('no_group');
  });

  it('of the expiry takes a preset, a time, or never', async () => {
    const { world, path, post, ada } = await withAda();
    await post(`${path}/expiry`, { had: '', ends: 'date', on: '2099-05-01T10:30' });
    expect((await ada()).attributes).toEqual({ app_expires: Date.UTC(2099, 4, 1, 10, 30) / 1000 });
    await post(`${path}/expiry`, { had: '2099-05-01T10:30:00Z', ends: 'never' });
    expect((await ada()).attributes).toEqual({});
    const { status } = await post(`${path}/expiry`, { had: '', ends: 'date', on: '1999-05-01T10:30' });
    expect([status, (await ada()).attributes]).toEqual([422, {}]);
    await world.deps.identity.accounts.changeAttributes((await ada()).id, { app_expires: 4_000_000_033 });
    await post(`${path}/expiry`, { had: '2096-10-02T07:07:13Z', ends: 'date', on: '2096-10-02T07:07' });
    expect((await ada()).attributes).toEqual({ app_expires: 4_000_000_033 });
  });

  it('of the role is saved, and refused for an unknown role', async () => {
    const { path, post, ada } = await withAda();
    await post(`${path}/role`, { had: 'none', role: 'viewer' });
    expect(groupsOf(await ada())).toEqual(['core_Blue', 'stack_viewer']);
    expect((await post(`${path}/role`, { had: 'viewer', role: 'king' })).status).toBe(422);
  });

  it('deactivates and reactivates, with a new expiry for an expired person', async () => {
    const { world, path, post, page, ada } = await withAda();
    expect(locationOf(await post(`${path}/deactivate`))).toBe(`${path}?done=deactivated`);
    expect((await ada()).isActive).toBe(false);
    const html = await page(path);
    expect(html).not.toContain(`href="${path}/enrollment"`);
    expect(textOf(html)).toContain('Reactivate ada');
    await world.deps.identity.accounts.changeAttributes((await ada()).id, { app_expires: 1_000_000_000 });
    expect(textOf(await page(path))).toContain('Expired 2001-09-09 01:46');
    expect((await post(`${path}/reactivate`, { ends: 'date', on: '2001-09-09T01:46' })).status).toBe(422);
    expect((await ada()).isActive).toBe(false);
    expect(locationOf(await post(`${path}/reactivate`, { ends: 'days-2' }))).toBe(`${path}?done=reactivated`);
    expect((await ada()).isActive).toBe(true);
    expect((await post(`${path}/reactivate`, { ends: 'never' })).status).toBe(409);
  });

  it('says what the identity provider refused, and shows the current person', async () => {
    const { world, path, post } = await withAda();
    world.deps.identity.accounts.change = async () => {
      throw new AppError('unavailable', 'The identity provider does not answer.');
    };
    const answer = await post(`${path}/details`, { name: 'Ada B', email: '' });
    expect([answer.status, await answer.text()]).toEqual([
      503,
      expect.stringContaining('The identity provider does not answer.'),
    ]);
  });
});

describe('a password', () => {
  it('is typed twice, and appears in no page', async () => {
    const { world, path, post, ada } = await withAda();
    const password = 'a good long password';
    const differing = await post(`${path}/password`, { password, repeated: `${password}!` });
    const html = await differing.text();
    expect([differing.status, html.includes(password)]).toEqual([422, false]);
    expect(html).toContain('id="repeated-fault"');
    const short = await post(`${path}/password`, { password: 'short', repeated: 'short' });
    expect([short.status, await short.text()]).toEqual([422, expect.stringContaining('at least 12 characters')]);
    expect(locationOf(await post(`${path}/password`, { password, repeated: password }))).toBe(`${path}?done=password`);
    expect(world.deps.identity.accepts((await ada()).username, password)).toBe(true);
  });

  it('is generated on request, works, and is shown only once', async () => {
    const { world, path, post, page } = await withAda();
    const made = async (): Promise<string> => {
      const html = await (await post(`${path}/password`, { make: 'yes' })).text();
      return /<code id="made-password">([^<]+)</.exec(html)?.[1] ?? '';
    };
    const [first, second] = [await made(), await made()];
    expect(second).toMatch(/^[a-km-np-z2-9]{5}(-[a-km-np-z2-9]{5}){3}$/);
    expect(first).not.toBe(second);
    expect(['ada', 'ada'].map((name, at) => world.deps.identity.accepts(name, [first, second][at] ?? ''))).toEqual([
      false,
      true,
    ]);
    expect(await page(path)).not.toContain(second);
  });
});

describe('when two administrators edit at the same time', () => {
  it('the second one sees the changes of the first one to name and email, and loses nothing', async () => {
    const { path, post, ada } = await withAda();
    const had = { had_name: 'Ada Lindt', had_email: 'ada@example.org' };
    await post(`${path}/details`, { ...had, name: 'Ada First', email: 'ada@example.org' });
    const answer = await post(`${path}/details`, { ...had, name: 'Ada Lindt', email: 'new@example.org' });
    const html = await answer.text();
    expect(answer.status).toBe(409);
    expect(html).toContain('another administrator changed the name to “Ada First”.');
    expect(html).toMatch(/name="name"[^>]*>/);
    expect(html).toMatch(/<input id="name"[^>]*value="Ada First"/);
    expect(html).toMatch(/<input id="email"[^>]*value="new@example.org"/);
    expect(await ada()).toMatchObject({ name: 'Ada First', email: 'ada@example.org' });
    const again = { had_name: 'Ada First', had_email: 'ada@example.org', name: 'Ada First', email: 'new@example.org' };
    expect((await post(`${path}/details`, again)).status).toBe(303);
    expect(await ada()).toMatchObject({ name: 'Ada First', email: 'new@example.org' });
  });

  it('the groups of both are kept after the second one has seen them', async () => {
    const { path, post, ada } = await withAda();
    await post(`${path}/groups`, { had: ['core_Blue'], groups: ['core_Blue', 'core_Red'] });
    const answer = await post(`${path}/groups`, { had: ['core_Blue'], groups: ['core_Green'], new_group: 'Night' });
    const html = await answer.text();
    expect(answer.status).toBe(409);
    expect(html).toContain('another administrator added the group core_Red.');
    expect(tickedIn(html).toSorted()).toEqual(['core_Green', 'core_Red']);
    expect(html).toContain('value="Night"');
    expect(groupsOf(await ada())).toEqual(['core_Blue', 'core_Red']);
    const again = { had: ['core_Blue', 'core_Red'], groups: ['core_Green', 'core_Red'], new_group: 'Night' };
    expect((await post(`${path}/groups`, again)).status).toBe(303);
    expect(groupsOf(await ada())).toEqual(['core_Green', 'core_Night', 'core_Red']);
  });

  it('a deleted group is reported, and one that both have chosen is not', async () => {
    const { world, path, post, ada } = await withAda();
    await post(`${path}/groups`, { had: ['core_Blue'], groups: ['core_Red'] });
    expect((await post(`${path}/groups`, { had: ['core_Blue'], groups: ['core_Red'] })).status).toBe(303);
    const green = await world.deps.identity.groups.named('core_Green');
    await world.deps.identity.groups.delete(green?.id ?? '');
    const answer = await post(`${path}/groups`, { had: ['core_Red'], groups: ['core_Red', 'core_Green'] });
    expect(await answer.text()).toContain('another administrator deleted the group core_Green.');
    expect([answer.status, groupsOf(await ada())]).toEqual([409, ['core_Red']]);
  });

  it('the expiry and role of the first one stay until the second one has seen them', async () => {
    const { path, post, ada } = await withAda();
    await post(`${path}/expiry`, { had: '', ends: 'date', on: '2099-05-01T10:30' });
    const late = await post(`${path}/expiry`, { had: '', ends: 'days-7' });
    expect([late.status, await late.text()]).toEqual([
      409,
      expect.stringContaining('another administrator changed access to “until 2099-05-01 10:30”.'),
    ]);
    await post(`${path}/role`, { had: 'none', role: 'viewer' });
    const role = await post(`${path}/role`, { had: 'none', role: 'admin' });
    expect([role.status, await role.text()]).toEqual([
      409,
      expect.stringContaining('another administrator changed the role to viewer.'),
    ]);
    expect((await ada()).attributes).toEqual({ app_expires: Date.UTC(2099, 4, 1, 10, 30) / 1000 });
    expect(groupsOf(await ada())).toEqual(['core_Blue', 'stack_viewer']);
  });
});
