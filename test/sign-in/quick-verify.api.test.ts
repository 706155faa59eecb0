// The short cut of /auth/verify for somebody who came in a moment ago: the same answers as the normal way, and no longer than
// they are true.

import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { withQuickAnswers } from '../../functions/quick-answers.ts';
import { type Bindings, sessionCookieName } from '../../shared/http/context.ts';
import { NOW, world } from '../health/fake-monitored.ts';
import { ADMIN, basic, type FakeDeps, fakeDeps, NOBODY, READER, VIEWER } from '../http/fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };
type Sent = Record<string, string>;
type Way = ReturnType<typeof withQuickAnswers>;

async function sessionOf({ signIns, now }: FakeDeps, username: string): Promise<string> {
  const expiresAt = new Date(now().getTime() + 3_600_000).toISOString();
  return (await signIns.openSession({ username, expiresAt, address: '', userAgent: '' })).text;
}
const cookie = (text: string): Sent => ({ cookie: `${sessionCookieName(false)}=${text}` });

const messagesOf = async (answer: Response) => [answer.status, Object.fromEntries(answer.headers), await answer.text()];

const ask = (way: Way, query: string, headers: Sent, connection = CONNECTION, method = 'GET') =>
  way(new Request(`http://h/auth/verify${query}`, { method, headers }), connection);

function stack() {
  const around = world();
  const deps = fakeDeps({}, around);
  deps.directory.addGroup('core_Zürich, Süd');
  deps.directory.people.get('vera')?.groups.push('core_Zürich, Süd');
  const normal: Way = createApp(deps).fetch;
  const quick = withQuickAnswers(normal, deps);
  /** True when the answer is there at once. */
  const isQuick = (headers: Sent, query = '', connection = CONNECTION): boolean =>
    ask(quick, query, headers, connection) instanceof Response;
  const status = async (headers: Sent, query = ''): Promise<number> => (await ask(quick, query, headers)).status;
  const later = (ms: number): void => void (around.now = new Date(around.now.getTime() + ms));
  return { deps, normal, quick, isQuick, status, later };
}

describe('the short cut of /auth/verify', () => {
  it('answers exactly as the normal way, whatever is asked and sent', async () => {
    const { deps, normal, quick } = stack();
    const text = await sessionOf(deps, 'vera');
    const token = await deps.signIns.createToken({
      owner: 'webadmin',
      scope: 'read',
      name: 'a token',
      expiresAt: new Date(NOW.getTime() + 3_600_000).toISOString(),
    });
    const sent: Sent[] = [
      {},
      ADMIN,
      VIEWER,
      NOBODY,
      READER,
      { authorization: `Bearer ${token.text}` },
      cookie(text),
      cookie(await sessionOf(deps, 'webadmin')),
      cookie(await sessionOf(deps, 'nora')),
      cookie(`${text}x`),
      cookie(''),
      cookie(`"${text}"`),
      { cookie: `a=b; holdfast=${text}; c=d` },
      { cookie: `xholdfast=${text}` },
      { cookie: `holdfast=no; holdfast=${text}` },
      { cookie: `__Host-holdfast=${text}` },
      { cookie: `__proto__=${text}` },
      { ...cookie(text), authorization: '' },
      { ...cookie(text), ...ADMIN },
      { ...cookie(text), authorization: basic('vera', 'wrong') },
      { authorization: 'Basic %%%' },
    ];
    const queries = ['', '?', '/', 'x', '?role=viewer', '?role=admin', '?role=root', '?base=core', '?role=', '?x=1'];
    const connections = [CONNECTION, { ...CONNECTION, secure: true }];
    for (const method of ['GET', 'HEAD'])
      for (const connection of connections)
        for (const query of queries)
          for (const headers of sent) {
            await deps.authenticator.release(CONNECTION.clientAddress);
            const requests = [method, connection.secure, query, headers];
            const short = await ask(quick, query, headers, connection, method);
            const long = await ask(normal, query, headers, connection, method);
            expect([...requests, ...(await messagesOf(short))]).toEqual([...requests, ...(await messagesOf(long))]);
          }
  });

  it('is taken without waiting for a session and a password that were accepted a moment ago, for half a second', async () => {
    const { deps, isQuick, status, later } = stack();
    for (const headers of [cookie(await sessionOf(deps, 'vera')), VIEWER]) {
      expect([isQuick(headers), isQuick(headers)]).toEqual([false, false]);
      expect(await status(headers)).toBe(200);
      expect([isQuick(headers), isQuick(headers, '?role=viewer')]).toEqual([true, true]);
      expect([isQuick(headers, '?role=admin'), isQuick(headers, '?base=core')]).toEqual([false, false]);
      expect(isQuick(headers, '', { ...CONNECTION, secure: true })).toBe(headers === VIEWER);
      later(501);
      expect(isQuick(headers)).toBe(false);
      expect([await status(headers), isQuick(headers)]).toEqual([200, true]);
    }
  });

  it('has the groups of now, and the names as the normal way writes them', async () => {
    const { deps, quick, isQuick, status } = stack();
    const session = cookie(await sessionOf(deps, 'vera'));
    const groups = async (): Promise<string | null> => {
      await status(session);
      expect(isQuick(session)).toBe(true);
      return (await ask(quick, '', session)).headers.get('remote-groups');
    };
    expect([await groups(), await groups()]).toEqual(Array(2).fill('stack_viewer,core_Z%C3%BCrich%2C%20S%C3%BCd'));
    deps.directory.people.get('vera')?.groups.splice(1);
    await deps.authenticator.forget('vera');
    expect(isQuick(session)).toBe(false);
    expect(await groups()).toBe('stack_viewer');
  });

  it('ends with the session, with the epoch, with the person and with its time', async () => {
    const ends: ((about: ReturnType<typeof stack>) => unknown)[] = [
      async ({ deps, later }) => {
        await deps.signIns.endSessions('vera');
        later(501);
      },
      ({ deps, later }) => {
        deps.signIns.endAllOf('vera');
        later(501);
      },
      ({ deps }) => {
        deps.signIns.endAllOf('vera');
        void deps.authenticator.forget('vera');
      },
      ({ later }) => later(3_600_000),
      ({ deps, later }) => {
        deps.directory.people.delete('vera');
        later(20_000);
      },
    ];
    for (const end of ends) {
      const about = stack();
      const text = await sessionOf(about.deps, 'vera');
      expect([await about.status(cookie(text)), about.isQuick(cookie(text))]).toEqual([200, true]);
      await end(about);
      expect([about.isQuick(cookie(text)), await about.status(cookie(text)), about.isQuick(cookie(text))]).toEqual([
        false,
        401,
        false,
      ]);
    }
  });

  it('is shut to a password, not to a session, from a locked address', async () => {
    const { deps, quick, isQuick, status } = stack();
    const session = cookie(await sessionOf(deps, 'vera'));
    for (const headers of [session, VIEWER]) expect(await status(headers)).toBe(200);
    for (let count = 0; count < 10; count++) await status({ authorization: basic('vera', `${count}`) });
    expect([await status(VIEWER), await status(VIEWER, '?base=core'), await status(session)]).toEqual([429, 429, 200]);
    expect([isQuick(VIEWER), isQuick(session)]).toEqual([true, true]);
    const elsewhere = { ...CONNECTION, clientAddress: '192.0.2.8' };
    expect((await ask(quick, '', VIEWER, elsewhere)).status).toBe(200);
  });
});
