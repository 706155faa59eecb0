import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { ADMIN, basic, fakeDeps, READER, VIEWER } from '../http/fake-deps.ts';

const deps = fakeDeps();
const app = createApp(deps);

async function ask(path: string, method = 'GET', headers = ADMIN, clientAddress = '192.0.2.7'): Promise<Response> {
  return app.request(path, { method, headers }, { requestId: 'request-1', clientAddress, secure: false });
}

async function lock(address: string): Promise<void> {
  const wrong = { authorization: basic('vera', 'wrong') };
  for (let count = 0; count < 10; count++) await ask('/api/health', 'GET', wrong, address);
  expect((await ask('/api/health', 'GET', VIEWER, address)).status).toBe(429);
}

const listed = async (): Promise<string[]> => {
  const { results } = (await (await ask('/api/lockouts')).json()) as { results: { address: string }[] };
  return results.map(({ address }) => address);
};

describe('GET /api/lockouts', () => {
  it('lists the addresses that are locked, IPv6 by its /64', async () => {
    await lock('192.0.2.1');
    await lock('2001:db8:0:1::5');
    const response = await ask('/api/lockouts');
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const locked_until = new Date(deps.now().getTime() + 15 * 60_000).toISOString();
    expect(await response.json()).toEqual({
      results: [
        { address: '192.0.2.1', door: 'http', failures: 10, locked_until },
        { address: '2001:db8:0:1::/64', door: 'http', failures: 10, locked_until },
      ],
    });
  });

  it('is for administrators', async () => {
    for (const headers of [VIEWER, READER]) {
      expect((await ask('/api/lockouts', 'GET', headers)).status).toBe(403);
      expect((await ask('/api/lockouts/192.0.2.1', 'DELETE', headers)).status).toBe(403);
    }
  });
});

describe('DELETE /api/lockouts/{address}', () => {
  it('lets the address try again, and is audited', async () => {
    const before = deps.audit.records.length;
    const response = await ask('/api/lockouts/192.0.2.1', 'DELETE');
    expect([response.status, await response.text()]).toEqual([204, '']);
    expect((await ask('/api/health', 'GET', VIEWER, '192.0.2.1')).status).toBe(200);
    const record = { actor: 'webadmin', action: 'lockout.release', target: '192.0.2.1', request_id: 'request-1' };
    expect(deps.audit.records.slice(before)).toMatchObject([
      { ...record, phase: 'intent' },
      { ...record, phase: 'outcome', result: 'ok', intent: before + 1 },
    ]);
  });

  it.each([
    '2001:db8:0:1::%2F64',
    '2001%3Adb8%3A0%3A1%3A%3A%2f64',
    '2001:DB8:0000:0001::%2F64',
    '2001:db8:0:1::5',
    '2001:db8:0:1:ffff:ffff:ffff:ffff',
  ])('understands %s', async (spelling) => {
    if (!(await listed()).includes('2001:db8:0:1::/64')) await lock('2001:db8:0:1::5');
    expect((await ask(`/api/lockouts/${spelling}`, 'DELETE')).status).toBe(204);
    expect(await listed()).toEqual([]);
  });

  it('says 404 with what to do when nothing is known of the address', async () => {
    const response = await ask('/api/lockouts/198.51.100.1', 'DELETE');
    expect(response.status).toBe(404);
    expect(problemSchema.parse(await response.json()).detail).toBe(
      '198.51.100.1 has no failed sign-ins. GET /api/lockouts lists the addresses that are locked out.',
    );
    expect(deps.audit.records.at(-1)).toMatchObject({ action: 'lockout.release', phase: 'outcome', result: 'failed' });
  });

  it.each(['webadmin', '192.0.2.1%00', '%20', '192.0.2.1%2F24'])(
    'says 422 to %s, which is no address',
    async (text) => {
      const response = await ask(`/api/lockouts/${text}`, 'DELETE');
      expect(response.status).toBe(422);
      expect(problemSchema.parse(await response.json()).errors?.map(({ path }) => path)).toEqual(['address']);
    },
  );

  it('does nothing while it cannot be audited', async () => {
    await lock('192.0.2.1');
    deps.audit.mood = 'away';
    expect((await ask('/api/lockouts/192.0.2.1', 'DELETE')).status).toBe(503);
    deps.audit.mood = 'up';
    expect(await listed()).toEqual(['192.0.2.1']);
  });
});
