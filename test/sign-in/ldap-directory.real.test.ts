// The directory over LDAP, looked at from the other side: what it asks, as whom, how often, and what it makes of answers.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import type { LdapDirectoryOptions } from '../../shared/sign-in/ldap/directory.ts';
import { issue } from '../support/certificates.ts';
import { BIND, done, entry, type LdapMood, SEARCH } from './fake-ldap-server.ts';
import { addUser, ldapWorld, PASSWORD, SERVICE_PASSWORD } from './fake-ldap-world.ts';

const CORE = 'DC=core,DC=holdfast';
const SERVICE_DN = `cn=adm_ldapservice,ou=users,${CORE}`;
const ALICE_DN = `cn=alice,ou=users,${CORE}`;
const ended: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

async function start(input: Partial<LdapDirectoryOptions> = {}, tls?: { key: string; cert: string }) {
  const world = await ldapWorld(input, tls);
  ended.push(() => world.end());
  const { server, directory } = world;
  return {
    ...world,
    signIn: (password = PASSWORD) => directory.signIn('core', 'alice', password),
    binds: () => server.requests.filter(({ kind }) => kind === 'bind').map(({ dn }) => dn),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Honest but for the bind of alice. */
function answersAliceWith(code: number): LdapMood {
  return ({ id, kind, dn }, socket, honest) =>
    kind === 'bind' && dn.startsWith('cn=alice') ? socket.write(done(id, BIND, code)) : honest();
}

describe('a result of a bind', () => {
  it.each([32, 34, 49, 50, 53])('%d is a refusal', async (code) => {
    const { server, signIn } = await start();
    server.mood = answersAliceWith(code);
    expect(await signIn()).toBeUndefined();
  });

  it.each([1, 3, 51, 52])('%d says that the directory cannot tell now', async (code) => {
    const { server, signIn } = await start();
    server.mood = answersAliceWith(code);
    await expect(signIn()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(`${code} (`),
    });
  });

  it.each([2, 7, 8, 10, 13, 14, 48, 80, 127])('%d makes no sense', async (code) => {
    const { server, signIn } = await start();
    server.mood = answersAliceWith(code);
    await expect(signIn()).rejects.toMatchObject({ code: 'upstream', message: expect.stringMatching(`${code}$`) });
  });
});

describe('an entry', () => {
  it.each([
    ['another name, as an attribute of the user may give it', { cn: ['webadmin'] }, undefined],
    ['no name', {}, undefined],
    ['the mark of somebody who is not active', { cn: ['alice'], 'ak-active': ['FALSE'] }, undefined],
    ['that mark in lower case', { cn: ['alice'], 'AK-Active': ['false'] }, undefined],
    ['several names', { cn: ['Ms Alice', 'Alice'] }, { username: 'Alice', groups: [] }],
    ['attributes in any case', { CN: ['alice'], MEMBEROF: [`CN=a,OU=Groups,${CORE}`] }, { groups: ['a'] }],
    [
      'memberships of all kinds',
      {
        cn: ['alice'],
        memberOf: [
          `cn=real,ou=groups,${CORE}`,
          `cn=REAL,ou=groups,dc=core,dc=HOLDFAST`,
          String.raw`cn=with\, comma,ou=groups,${CORE}`,
          `cn=stack_admin,ou=deep,ou=groups,${CORE}`,
          `cn=stack_admin,ou=virtual-groups,${CORE}`,
          `cn=stack_admin,ou=groups,DC=web,DC=holdfast`,
          `cn=stack_admin,ou=groups,${CORE},DC=org`,
          `cn=stack_admin+ou=x,ou=groups,${CORE}`,
          `uid=stack_admin,ou=groups,${CORE}`,
          String.raw`cn=stack_admin\,ou=groups,${CORE}`,
          `ou=groups,${CORE}`,
          'stack_admin',
          '',
        ],
      },
      { groups: ['REAL', 'with, comma'] },
    ],
  ])('with %s', async (_, attributes, expected) => {
    const { server, signIn } = await start();
    server.entries.set(ALICE_DN.toLowerCase(), attributes);
    const found = await signIn();
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(expected);
  });

  it('that is not shown to its own user is a fault of the directory, not of the user', async () => {
    const { server, signIn } = await start();
    server.entries.delete(ALICE_DN.toLowerCase());
    await expect(signIn()).rejects.toMatchObject({ code: 'upstream' });
  });

  it('of a group may have many members', async () => {
    const { server, directory } = await start({ withinMs: 5000 });
    const member = Array.from({ length: 20_000 }, (_, index) => `cn=user-${index},ou=users,${CORE}`);
    server.entries.set(`ou=groups,${CORE}`.toLowerCase(), { cn: ['stack_admin'], member });
    expect(await directory.probe('core', 'stack_admin')).toBe(20_000);
  });
});

describe('a directory that keeps who is bound by name, and forgets it when any connection of that name ends', () => {
  /** Refuses the first search after each call. */
  const forgets = (): { mood: LdapMood; forget: (times: number) => void } => {
    let left = 0;
    const mood: LdapMood = ({ id, kind }, socket, honest) =>
      kind === 'search' && left-- > 0 ? socket.write(done(id, SEARCH, 50)) : honest();
    return { mood, forget: (times) => (left = times) };
  };

  it('is bound to once more, and asked again', async () => {
    const { server, directory, signIn, binds } = await start();
    const { mood, forget } = forgets();
    server.mood = mood;
    forget(1);
    expect(await signIn()).toMatchObject({ username: 'alice', isActive: true });
    expect(binds()).toEqual([SERVICE_DN, ALICE_DN, ALICE_DN]);
    forget(1);
    expect(await directory.find('alice')).toMatchObject({ username: 'alice' });
    expect(binds().slice(3)).toEqual([SERVICE_DN, SERVICE_DN]);
  });

  it('is a fault when it forgets again at once', async () => {
    const { server, directory, signIn } = await start();
    const { mood, forget } = forgets();
    server.mood = mood;
    for (const call of [() => signIn(), () => directory.find('alice')]) {
      forget(2);
      await expect(call()).rejects.toMatchObject({ code: 'upstream', message: expect.stringMatching(/result 50$/) });
    }
  });
});

describe('names and passwords that nobody has', () => {
  it.each([
    ['', PASSWORD],
    ['alice', ''],
    ['alice\0', PASSWORD],
    ['alice', `${PASSWORD}\0`],
    ['a'.repeat(151), PASSWORD],
    ['alice', 'ä'.repeat(513)],
    ['alice\uDC00', PASSWORD],
    ['alice', '\uD800'],
  ])('%j with %j are not sent', async (username, password) => {
    const { server, directory } = await start();
    expect(await directory.signIn('core', username, password)).toBeUndefined();
    expect(server.connections).toBe(0);
  });
});

describe('the connections', () => {
  it('introduce themselves as the service account, once each, and are used again', async () => {
    const { server, directory, signIn, binds } = await start();
    await signIn();
    await signIn('wrong');
    await signIn();
    expect(binds()).toEqual([SERVICE_DN, ALICE_DN, ALICE_DN, ALICE_DN]);
    await directory.find('alice');
    await directory.find('alice');
    expect(binds().slice(4)).toEqual([SERVICE_DN]);
    expect(server.connections).toBe(1);
  });

  it('ask for every entry as those who may see it, whoever was there before', async () => {
    const { server, directory } = await start({ maxConnections: 3, withinMs: 5000 });
    for (let user = 0; user < 10; user++) addUser(server, CORE, `user-${user}`, `${PASSWORD}-${user}`);
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const username = `user-${index % 10}`;
        if (index % 7 === 0) return expect((await directory.find(username))?.username).toBe(username);
        const right = index % 3 !== 0;
        const found = await directory.signIn('core', username, right ? `${PASSWORD}-${index % 10}` : 'wrong');
        expect(found?.username).toBe(right ? username : undefined);
      }),
    );
    for (const { kind, dn, identity } of server.requests)
      if (kind === 'search') expect([dn, SERVICE_DN]).toContain(identity);
    expect(server.connections).toBeLessThanOrEqual(3);
  });

  it('are asked once more when the directory has closed them meanwhile, and only then', async () => {
    const { server, signIn, binds } = await start();
    await signIn();
    let closed = 0;
    server.mood = ({ connection }, socket, honest) => {
      if (connection > 0) return honest();
      closed++;
      socket.destroy();
    };
    expect(await signIn('wrong')).toBeUndefined();
    expect(closed).toBe(1);
    expect(binds().slice(2)).toEqual([ALICE_DN, SERVICE_DN, ALICE_DN]);
    expect(await signIn()).toMatchObject({ username: 'alice' });
    expect(server.connections).toBe(2);
  });

  it('are not asked once more when a new one is closed, or when something was answered', async () => {
    const { server, signIn } = await start();
    server.mood = ({ dn }, socket, honest) => (dn === ALICE_DN ? socket.destroy() : honest());
    await expect(signIn()).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.connections).toBe(1);
    server.mood = (_request, _socket, honest) => honest();
    await signIn();
    server.mood = ({ kind }, socket, honest) => (kind === 'search' ? socket.destroy() : honest());
    await expect(signIn()).rejects.toMatchObject({ code: 'unavailable' });
    expect(server.connections).toBe(2);
  });

  it('are all given up when one of them does not answer any more', async () => {
    const { server, directory, signIn } = await start({ withinMs: 400 });
    server.mood = (_request, _socket, honest) => void setTimeout(honest, 20);
    await Promise.all([signIn(), signIn(), signIn()]);
    const before = server.connections;
    expect(before).toBe(3);
    server.mood = ({ connection }, _socket, honest) => (connection < before ? undefined : honest());
    await expect(directory.find('alice')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/does not answer in time$/),
    });
    for (let time = 0; time < 3; time++) expect(await signIn()).toMatchObject({ username: 'alice' });
  });

  it('are no more than allowed, and those who wait get their turn or an answer in time', async () => {
    const { server, signIn } = await start({ maxConnections: 2 });
    server.mood = () => {};
    let most = 0;
    server.welcome = () => (most = Math.max(most, server.open.size));
    const begun = performance.now();
    const outcomes = await Promise.allSettled(Array.from({ length: 400 }, () => signIn()));
    expect(performance.now() - begun).toBeLessThan(20_000);
    expect(new Set(outcomes.map((one) => one.status === 'rejected' && one.reason.code))).toEqual(
      new Set(['unavailable']),
    );
    expect(outcomes.at(-1)).toMatchObject({
      reason: { message: expect.stringContaining('is overloaded: too many requests at once') },
    });
    // A place that becomes free is taken before the server knows that it is.
    expect(most).toBeLessThanOrEqual(4);
  });

  it('are shared by both bases', async () => {
    const { server, directory } = await start({ maxConnections: 2, withinMs: 5000 });
    const asks = Array.from({ length: 100 }, (_, at) =>
      directory.signIn(at % 2 === 0 ? 'core' : 'web', 'alice', PASSWORD),
    );
    const users = await Promise.all(asks);
    expect(users.every((user) => user?.username === 'alice')).toBe(true);
    await pause(100);
    expect(server.open.size).toBeLessThanOrEqual(2);
  });

  it('are closed when nobody needs them for a while', async () => {
    const { server, signIn } = await start({ idleMs: 50 });
    await signIn();
    expect(server.open.size).toBe(1);
    await pause(300);
    expect(server.open.size).toBe(0);
    expect(server.requests.at(-1)?.kind).toBe('unbind');
  });

  it('of a probe are new each time, and closed afterwards', async () => {
    const { server, directory, signIn, binds } = await start();
    await signIn();
    expect(await directory.probe('core', 'stack_admin')).toBe(2);
    expect(await directory.probe('core', 'stack_admin')).toBe(2);
    expect(binds().slice(2)).toEqual([SERVICE_DN, SERVICE_DN]);
    await pause(100);
    expect(server.connections).toBe(3);
    expect(server.open.size).toBe(1);
  });

  it('end with the directory, after the work that is under way', async () => {
    const { server, directory, signIn } = await start();
    server.mood = ({ kind }, _, honest) => void (kind === 'search' ? setTimeout(honest, 100) : honest());
    const last = signIn();
    await pause(50);
    await directory.close();
    expect(await last).toMatchObject({ username: 'alice' });
    await expect(signIn()).rejects.toMatchObject({ code: 'unavailable' });
    await pause(50);
    expect(server.open.size).toBe(0);
  });

  it('do not keep the process alive', async () => {
    const { server } = await start();
    const home = join(import.meta.dirname, '../..');
    const script = `
      const { LdapDirectory } = await import('${home}/shared/sign-in/ldap/directory.ts');
      const { Secret } = await import('${home}/packages/kit/secret.ts');
      const directory = new LdapDirectory({ url: 'ldap://127.0.0.1:${server.port}', coreBase: '${CORE}', webBase: '${CORE}',
        serviceAccount: { username: 'adm_ldapservice', password: new Secret('${SERVICE_PASSWORD}') }, log: console });
      console.log((await directory.signIn('core', 'alice', '${PASSWORD}')).username);`;
    const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 10_000 });
    expect((await run).stdout).toBe('alice\n');
  });

  it('that get a second answer with the first are dropped, and no answer goes to somebody else', async () => {
    const { server, signIn } = await start();
    server.mood = ({ id, kind }, socket, honest) => {
      if (kind !== 'search') return honest();
      const shown = entry(id, ALICE_DN, { cn: ['alice'] });
      socket.write(Buffer.concat([shown, done(id, SEARCH), done(id + 1, BIND), done(id + 2, BIND)]));
    };
    expect(await signIn()).toMatchObject({ username: 'alice' });
    expect(await signIn('wrong')).toBeUndefined();
    expect(server.connections).toBe(2);
  });
});

describe('ldaps', () => {
  async function endpoint(names = ['127.0.0.1']) {
    const ca = await issue('test CA', undefined, { ca: true });
    const own = await issue('directory', ca, { names });
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-ldaps-'));
    ended.push(async () => rmSync(folder, { recursive: true }));
    const tlsCaFile = join(folder, 'ca.pem');
    writeFileSync(tlsCaFile, ca.pem);
    return { tls: { key: own.key, cert: own.pem }, tlsCaFile, missing: join(folder, 'none.pem') };
  }

  it('is believed with a certificate of the own authority', async () => {
    const { tls, tlsCaFile } = await endpoint();
    const { directory, signIn } = await start({ tlsCaFile, withinMs: 3000 }, tls);
    expect(await signIn()).toMatchObject({ username: 'alice' });
    expect(await signIn('wrong')).toBeUndefined();
    expect(await directory.probe('web', 'stack_admin')).toBe(2);
  });

  it('is sent nothing without a certificate that can be trusted', async () => {
    const good = await endpoint();
    const other = await endpoint(['ldap.example.org']);
    for (const [tls, tlsCaFile] of [
      [good.tls, undefined],
      [good.tls, good.missing],
      [good.tls, other.tlsCaFile],
      [other.tls, other.tlsCaFile],
    ] as const) {
      const { server, signIn } = await start({ tlsCaFile, withinMs: 3000 }, tls);
      await expect(signIn()).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('presents a certificate that is not trusted'),
      });
      expect(server.requests).toEqual([]);
    }
  });

  it('is not spoken with a server without TLS, nor the other way round', async () => {
    const { tls, tlsCaFile } = await endpoint();
    const plain = await start();
    const secure = await start({ tlsCaFile }, tls);
    for (const url of [`ldaps://127.0.0.1:${plain.server.port}`, `ldap://127.0.0.1:${secure.server.port}`]) {
      const { signIn, directory } = await start({ url, tlsCaFile });
      await expect(signIn()).rejects.toMatchObject({ code: expect.stringMatching(/^(unavailable|upstream)$/) });
      await expect(directory.probe('core', 'x')).rejects.toMatchObject({ name: 'AppError' });
    }
  });
});
