// Debian's slapd with two suffixes, as a real directory for tests.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Attribute, Change, Client } from 'ldapts';
import { escapeNameValue } from '@holdfast/kit/distinguished-name';
import { freePort } from '../support/free-port.ts';

const BINARY = '/usr/sbin/slapd';
const SCHEMA = '/etc/ldap/schema';
const MODULES = '/usr/lib/ldap';
const ROOT_PASSWORD = 'root of the test directory';
const BASES = ['core', 'web'];

export const SLAPD_SERVICE = { username: 'adm_ldapservice', password: 'the password of the service account' };

/** Why slapd cannot run here; undefined when it can. */
export const slapdMissing = [BINARY, `${SCHEMA}/inetorgperson.schema`, `${MODULES}/memberof.so`]
  .filter((path) => !existsSync(path))
  .map((path) => `${path} is missing (Debian package slapd)`)[0];

export interface Slapd {
  port: number;
  createUser(username: string, password: string): Promise<void>;
  join(username: string, group: string): Promise<void>;
  joinElsewhere(username: string, group: string): Promise<void>;
  setServicePassword(password: string): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  end(): Promise<void>;
}

/** `extra` lines go to the global part of its configuration; `scheme` may be ldaps when they name a certificate. */
export async function startSlapd(extra: string[] = [], scheme: 'ldap' | 'ldaps' = 'ldap'): Promise<Slapd> {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-slapd-'));
  const port = await freePort();
  const adminSocket = `ldapi://${encodeURIComponent(join(directory, 'admin'))}`;
  const adminPort = await freePort();
  const urls = `${scheme}://127.0.0.1:${port} ldap://127.0.0.1:${adminPort} ${adminSocket}`;
  const file = join(directory, 'slapd.conf');
  writeFileSync(file, configuration(directory, extra));
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const started = spawn(BINARY, ['-h', urls, '-f', file, '-d', '0'], { stdio: 'ignore' });
    child = started;
    for (let time = 0; time < 200; time++) {
      if (started.exitCode !== null) throw new Error(`slapd ended with ${started.exitCode}`);
      if (await accepts(port)) return;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error('slapd did not start in 5 s');
  }

  async function stop(): Promise<void> {
    const stopped = child;
    child = undefined;
    if (stopped === undefined || stopped.exitCode !== null) return;
    const exit = once(stopped, 'exit');
    stopped.kill('SIGKILL');
    await exit;
  }

  async function asRoot(change: (client: Client, base: string) => Promise<void>): Promise<void> {
    for (const name of BASES) {
      const base = `DC=${name},DC=holdfast`;
      const client = new Client({ url: `ldap://127.0.0.1:${adminPort}`, timeout: 10_000 });
      try {
        await client.bind(`cn=root,${base}`, ROOT_PASSWORD);
        await change(client, base);
      } finally {
        await client.unbind();
      }
    }
  }

  async function addMember(username: string, groupDn: (base: string) => string, group: string): Promise<void> {
    await asRoot(async (client, base) => {
      const member = userDn(username, base);
      const attribute = new Attribute({ type: 'member', values: [member] });
      try {
        await client.modify(groupDn(base), new Change({ operation: 'add', modification: attribute }));
      } catch {
        await client.add(groupDn(base), { objectClass: 'groupOfNames', cn: group, member });
      }
    });
  }

  const createUser = (username: string, password: string): Promise<void> =>
    asRoot((client, base) =>
      client.add(userDn(username, base), {
        objectClass: 'inetOrgPerson',
        cn: username,
        sn: 'x',
        userPassword: password,
      }),
    );

  await start();
  await asRoot(async (client, base) => {
    const dc = base.slice(3, base.indexOf(','));
    await client.add(base, { objectClass: ['dcObject', 'organization'], o: 'Holdfast', dc });
    for (const unit of ['users', 'groups', 'elsewhere'])
      await client.add(`ou=${unit},${base}`, { objectClass: 'organizationalUnit', ou: unit });
    await client.add(`ou=deep,ou=groups,${base}`, { objectClass: 'organizationalUnit', ou: 'deep' });
  });
  await createUser(SLAPD_SERVICE.username, SLAPD_SERVICE.password);

  return {
    port,
    createUser,
    join: (username, group) => addMember(username, (base) => `cn=${escapeNameValue(group)},ou=groups,${base}`, group),
    async joinElsewhere(username, group) {
      for (const place of ['ou=elsewhere', 'ou=deep,ou=groups'])
        await addMember(username, (base) => `cn=${escapeNameValue(group)},${place},${base}`, group);
    },
    setServicePassword: (password) =>
      asRoot((client, base) => {
        const modification = new Attribute({ type: 'userPassword', values: [password] });
        return client.modify(userDn(SLAPD_SERVICE.username, base), new Change({ operation: 'replace', modification }));
      }),
    stop,
    start,
    async end() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function userDn(username: string, base: string): string {
  return `cn=${escapeNameValue(username)},ou=users,${base}`;
}

function configuration(directory: string, extra: string[]): string {
  const schemas = ['core', 'cosine', 'nis', 'inetorgperson'].map((name) => `include ${SCHEMA}/${name}.schema`);
  const databases = BASES.flatMap((name) => {
    const base = `DC=${name},DC=holdfast`;
    mkdirSync(join(directory, name));
    return [
      'database mdb',
      `suffix "${base}"`,
      `rootdn "cn=root,${base}"`,
      `rootpw "${ROOT_PASSWORD}"`,
      `directory ${join(directory, name)}`,
      'maxsize 33554432',
      'dbnosync',
      'overlay memberof',
      'access to attrs=userPassword by anonymous auth by * none',
      `access to * by dn.exact="cn=${SLAPD_SERVICE.username},ou=users,${base}" read by self read by * none`,
    ];
  });
  const general = [`modulepath ${MODULES}`, 'moduleload back_mdb', 'moduleload memberof', `pidfile ${directory}/pid`];
  return [...schemas, ...general, ...extra, ...databases, ''].join('\n');
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
