import { beforeEach, describe, expect, it } from 'vitest';
import { basic, NOBODY, PASSWORD, READER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from './fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

interface Answer {
  status: number;
  body: Record<string, unknown>;
}
async function ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
  const response = await world.ask(method, path, body, headers);
  const text = await response.text();
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
}
const idOf = async (username: string): Promise<number> => (await world.named(username)).id;

async function token(scope: 'read' | 'users' | 'admin'): Promise<Record<string, string>> {
  const expiresAt = '2030-01-01T00:00:00.000Z';
  const { text } = await world.deps.signIns.createToken({ name: scope, scope, owner: 'webadmin', expiresAt });
  return { authorization: `Bearer ${text}` };
}

describe('GET /api/me', () => {
  it('tells anybody who signed in who they are, and how they came in', async () => {
    expect((await ask('GET', '/api/me', undefined, NOBODY)).body).toMatchObject({
      id: await idOf('nora'),
      username: 'nora',
      role: 'none',
      signed_in_by: { kind: 'password' },
    });
    const read = await ask('GET', '/api/me', undefined, await token('read'));
    expect(read.body).toMatchObject({
      username: 'webadmin',
      role: 'admin',
      signed_in_by: { kind: 'token', scope: 'read' },
    });
    expect((await ask('GET', '/api/me', undefined, READER)).status).toBe(403);
    expect((await ask('GET', '/api/me', undefined, await token('users'))).status).toBe(403);
  });

  it('is 404 for somebody whose account is gone', async () => {
    await world.deps.identity.accounts.delete(await idOf('nora'));
    expect((await ask('GET', '/api/me', undefined, NOBODY)).status).toBe(404);
  });
});

describe('POST /api/me/password', () => {
  const NEW = 'other horse, other battery';
  const change = async (current: string, password: string, headers: Record<string, string> = NOBODY): Promise<Answer> =>
    ask('POST', '/api/me/password', { current_password: current, password }, headers);

  it('changes it for whoever knows the current one, and ends their sessions', async () => {
    expect((await change(PASSWORD, NEW)).status).toBe(204);
    expect(world.deps.identity.accepts('nora', NEW)).toBe(true);
    expect(await world.deps.signIns.epoch('nora')).toBe(1);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ actor: 'nora', action: 'user.password', target: 'nora' });
  });

  it('works from a session, which ends', async () => {
    const { text } = await world.deps.signIns.openSession({
      username: 'nora',
      expiresAt: '2030-01-01T00:00:00.000Z',
      address: '',
      userAgent: '',
    });
    const cookie = { cookie: `holdfast=${text}` };
    expect((await ask('GET', '/api/me', undefined, cookie)).body['signed_in_by']).toEqual({ kind: 'session' });
    expect((await change(PASSWORD, NEW, cookie)).status).toBe(204);
    expect((await ask('GET', '/api/me', undefined, cookie)).status).toBe(401);
  });

  it('refuses a wrong current one with 401, counts it, and is locked with 429 in the end', async () => {
    const { text } = await world.deps.signIns.createToken({
      name: 'x',
      scope: 'admin',
      owner: 'nora',
      expiresAt: '2030-01-01T00:00:00.000Z',
    });
    const bearer = { authorization: `Bearer ${text}` };
    for (let times = 0; times < 10; times += 1)
      expect((await change('a wrong password', NEW, bearer)).status).toBe(401);
    expect((await change(PASSWORD, NEW, bearer)).status).toBe(429);
    expect(world.deps.identity.accepts('nora', NEW)).toBe(false);
  });

  it('refuses a new one that breaks the rules, with the right current one', async () => {
    const { status, body } = await change(PASSWORD, 'short');
    expect([status, body['errors']]).toEqual([422, [{ path: 'password', message: expect.stringMatching(/12/) }]]);
  });

  it('is nothing for tokens that only read or manage users', async () => {
    for (const scope of ['read', 'users'] as const)
      expect((await change(PASSWORD, NEW, await token(scope))).status).toBe(403);
    expect((await change(PASSWORD, NEW, READER)).status).toBe(403);
  });

  it('is nothing for webadmin by the emergency sign-in', async () => {
    world.deps.directory.mood = 'down';
    expect((await change(PASSWORD, NEW, { authorization: basic('webadmin', PASSWORD) })).status).toBe(403);
  });
});
