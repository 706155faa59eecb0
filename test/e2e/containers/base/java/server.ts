// The five programs of the server. The one of profile `api` becomes our embedded core on what
// CoreConfig.xml says of database, directory, keystores and ports; the others look at their part,
// say that they have started as the real ones do, and stay.

import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { isAbsolute, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Element } from '@xmldom/xmldom';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import { webBaseBeside } from '@holdfast/kit/directory';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { certificateStore } from '../../../../../packages/core/store/certificates.ts';
import { CoreConfig, databaseUrl, HOME, Refused } from './core-config.ts';
import type { JavaCall } from './java-call.ts';

const CORE = '/opt/holdfast/dist/core.js';
const PORTS = { api: 8443, enrollment: 8446, streaming: 8089 };
const METADATA = ['STATE', 'CITY', 'ORGANIZATION', 'ORGANIZATIONAL_UNIT', 'COUNTRY', 'CAPASS', 'PASS'];
const RETENTION_FILES = [
  'conf/retention/retention-policy.yml',
  'conf/retention/retention-service.yml',
  'conf/retention/mission-archiving-config.yml',
  'mission-archive/mission-store.yml',
];

export async function runServer({ profile }: JavaCall): Promise<void> {
  if (process.cwd() !== HOME) throw new Refused(`It runs in ${HOME}, not in ${process.cwd()}`);
  if (!existsSync('TAKIgniteConfig.xml')) copyFileSync('TAKIgniteConfig.example.xml', 'TAKIgniteConfig.xml');
  if (profile === 'config') return runConfig();
  if (profile === 'messaging') return runMessaging();
  if (profile === 'api') return runApi();
  throw new Refused(`There is no profile '${profile}'`);
}

export async function runPlugins(): Promise<void> {
  says('plugins', 'Started TAK Server plugin manager');
  await stays();
}

export async function runRetention(): Promise<void> {
  for (const file of RETENTION_FILES) if (!existsSync(file)) throw new Refused(`There is no ${file}`);
  await listening(PORTS.api);
  says('retention', ' Retention Application started  ');
  await stays();
}

async function runConfig(): Promise<void> {
  const config = new CoreConfig();
  if (config.all('certificateSigning').length !== 1) throw new Refused('certificateSigning is not there');
  says('config', 'Started TAK Server config Microservice');
  await stays();
}

async function runMessaging(): Promise<void> {
  const config = new CoreConfig();
  const [input] = config.all('network/input');
  if (input === undefined) throw new Refused('There is no input');
  for (const [name, value] of Object.entries({ protocol: 'tls', port: String(PORTS.streaming), auth: 'x509' }))
    config.must(input, name, value);
  keystores(config);
  await listening(PORTS.streaming);
  says('messaging', 'NioServer - Server started');
  says('messaging', 'Started TAK Server messaging Microservice');
  await stays();
}

async function runApi(): Promise<void> {
  const missing = METADATA.filter((name) => (process.env[name] ?? '') === '');
  if (missing.length > 0)
    throw new Refused(`The list of revoked certificates could not be renewed without ${missing.join(', ')}`);
  const config = new CoreConfig();
  keystores(config);
  signing(config);
  const handover = handoverOf(config);
  await ownCertificateIsKnown(handover.databaseUrl);
  process.env[CORE_VARIABLE] = JSON.stringify(handover);
  await import(CORE);
  await listening(PORTS.api);
  says('api', 'Tomcat started on port');
  says('api', 'Started TAK Server api Microservice');
}

/** Each must be there and open with its password. */
function keystores(config: CoreConfig): void {
  const tls = config.only('security/tls');
  opens(config, tls, 'keystore');
  opens(config, tls, 'truststore');
  const lists = config.all('security/tls/crl').map((each) => config.must(each, 'crlFile'));
  for (const list of lists) if (!existsSync(inHome(list))) throw new Refused(`There is no ${list}`);
}

function opens(config: CoreConfig, element: Element, kind: 'keystore' | 'truststore'): void {
  const file = inHome(config.must(element, `${kind}File`));
  const type = config.must(element, kind);
  const password = config.must(element, `${kind}Pass`);
  if (!existsSync(file)) throw new Refused(`There is no ${file}`);
  if (type !== 'PKCS12') return;
  const { status, stderr } = spawnSync('openssl', ['pkcs12', '-in', file, '-noout', '-passin', 'env:PASSWORD'], {
    env: { ...process.env, PASSWORD: password },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Refused(`${file} does not open: ${stderr}`);
}

function signing(config: CoreConfig): void {
  config.must(config.only('certificateSigning'), 'CA', 'TAKServer');
  const ca = config.only('certificateSigning/TAKServerCAConfig');
  opens(config, ca, 'keystore');
  const names = config.all('certificateSigning/certificateConfig/nameEntries/nameEntry');
  const entries = names.map((each) => config.must(each, 'name'));
  if (entries.toSorted().join() !== 'O,OU') throw new Refused(`The name entries are ${entries.join()}, not O and OU`);
  for (const [name, extension] of [
    ['CAkey', 'key'],
    ['CAcertificate', 'pem'],
  ] as const) {
    const file = `${inHome(config.must(ca, name))}.${extension}`;
    if (!existsSync(file)) throw new Refused(`There is no ${file}`);
  }
}

function handoverOf(config: CoreConfig): CoreHandover {
  const { url, user, password } = config.database();
  config.must(config.only('auth'), 'x509checkRevocation', 'true');
  const [first] = config.all('network/connector');
  if (first?.getAttribute('port') !== String(PORTS.api))
    throw new Refused('The first connector is not the one at 8443');
  config.must(config.connector(String(PORTS.enrollment)), 'clientAuth', 'false');
  const ldap = config.only('auth/ldap');
  const base = /^cn=\{username\},ou=users,(.+)$/.exec(config.must(ldap, 'userstring'))?.[1];
  if (base === undefined) throw new Refused('ldap@userstring does not lead to users below a base');
  config.must(ldap, 'serviceAccountDN', `cn=adm_ldapservice,ou=users,${base}`);
  if (!config.must(ldap, 'groupprefix').toLowerCase().startsWith('cn=core_')) throw new Refused('ldap@groupprefix');
  const names = serverNames();
  return {
    databaseUrl: databaseUrl(url, user, password),
    directory: HOME,
    addresses: ['0.0.0.0'],
    apiPort: PORTS.api,
    enrollmentPort: PORTS.enrollment,
    streamingPort: PORTS.streaming,
    serverNames: names,
    serverAddress: names[0] ?? 'takserver',
    ldap: {
      url: config.must(ldap, 'url'),
      bases: { core: base, web: webBaseBeside(base) },
      bindPassword: config.must(ldap, 'serviceAccountCredential'),
    },
    roleGroups: [ldap.getAttribute('adminGroup') ?? ''].filter((name) => name !== ''),
    trustedProxies: [],
    thinning: [],
  };
}

/** The certificate stays as it was made: our core would make another one for other names. */
function serverNames(): string[] {
  const { subjectAltName = '' } = new X509Certificate(readFileSync(inHome('certs/files/takserver.pem')));
  return subjectAltName.split(', ').map((each) => each.replace(/^(?:DNS|IP Address):/, ''));
}

/** Our core lets in only whom its table knows; the real one also who was made by a script. */
async function ownCertificateIsKnown(url: string): Promise<void> {
  const pem = readFileSync(inHome('certs/files/svc_api.pem'), 'utf8');
  const { fingerprint256: hash, validFrom, validTo, subject } = new X509Certificate(pem);
  const signed = {
    pem,
    hash,
    subject: subject.replaceAll('\n', ','),
    commonName: 'svc_api',
    notBefore: new Date(validFrom),
    notAfter: new Date(validTo),
  };
  await withDatabase(new Secret(url), 'release-core', 60_000, async (sql) => {
    const store = certificateStore((use) => use(sql));
    if ((await store.byHash(hash)) !== undefined) return;
    await store.add(signed as Parameters<typeof store.add>[0], { creator: 'script', clientUid: 'svc_api' }, new Date());
  });
}

function inHome(path: string): string {
  return isAbsolute(path) ? path : join(HOME, path);
}

/** On the process's own output, which ends in takserver.log, and in its log. */
function says(program: string, message: string): void {
  const at = new Date().toISOString().replace('T', '-').replace('Z', '');
  const line = `${at} [main] INFO t.s.Application - ${message}\n`;
  process.stdout.write(line);
  mkdirSync('logs', { recursive: true });
  appendFileSync(`logs/takserver-${program}.log`, line);
}

async function listening(port: number): Promise<void> {
  while (!(await takesConnections(port))) await delay(200);
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket
      .once('error', () => resolve(false))
      .once('connect', () => {
        socket.end();
        resolve(true);
      });
  });
}

async function stays(): Promise<void> {
  process.once('SIGTERM', () => process.exit(143));
  for (;;) await delay(2 ** 30);
}
