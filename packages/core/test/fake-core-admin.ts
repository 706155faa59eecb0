// The admin API of the core over honest in-memory parts, and people who ask it.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { AppError } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import type { SignedCertificate } from '@holdfast/pki/parts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { fakeDirectory } from '../../../test/sign-in/fake-directory.ts';
import { issue } from '../../../test/support/certificates.ts';
import { createAdminApi } from '../admin/app.ts';
import { type AdminApiOptions, OwnProcess } from '../admin/options.ts';
import { retentionFiles } from '../admin/retention-files.ts';
import { membershipsOf, PeopleGroups } from '../groups/own-groups.ts';
import type {
  CertificateRecord,
  ClientCertificate,
  CoreCaller,
  CoreDirectory,
  CoreRole,
  KnownGroup,
  Revocations,
  Subscription,
} from '../model/parts.ts';
import type { ServerEvent } from '../model/stream.ts';
import { certificateLists } from '../store/certificates.ts';
import type { ActiveGroups, GroupState, GroupStore } from '../store/groups.ts';
import { ProductFiles } from '../store/products.ts';
import { memoryCertificates } from './fake-core-certificates.ts';
import { noMissions } from './fake-core-missions.ts';
import { noErrorLogs, noProfiles, noReports } from './fake-core-profiles.ts';
import { memoryResources, testSpool } from './fake-core-resources.ts';

export const NODE_ID = '0123456789abcdef0123456789abcdef';
export const START = Date.parse('2026-11-22T10:20:30.007Z');

/** A certificate as a client shows it. */
export function clientCertificate(commonName: string, input: Partial<ClientCertificate> = {}): ClientCertificate {
  const hash = Array.from(
    { length: 32 },
    (_, index) => (commonName.charCodeAt(index % commonName.length) + index) % 256,
  )
    .map((byte) => byte.toString(16).padStart(2, '0').toUpperCase())
    .join(':');
  return { serial: '1a', hash, commonName, subject: `CN=${commonName},OU=CoT,O=Holdfast`, channels: true, ...input };
}

export function byCertificate(username: string, role: CoreRole = 'ROLE_ANONYMOUS', channels = true): CoreCaller {
  return { username, by: 'certificate', role, certificate: clientCertificate(username, { channels }) };
}

export const ADMIN = byCertificate('svc_api', 'ROLE_ADMIN');

function fakeGroupStore(now: () => Date): GroupStore {
  const known: KnownGroup[] = [{ name: '__ANON__', bitpos: 2, created: now(), type: 'SYSTEM' }];
  return {
    list: async () => known.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    async ensure(names) {
      for (const name of new Set(names))
        if (!known.some((group) => group.name === name))
          known.push({ name, bitpos: known.length + 2, created: now(), type: 'LDAP' });
      return known.filter(({ name }) => names.includes(name));
    },
  };
}

function fakeActiveGroups(): ActiveGroups {
  const states = new Map<string, Map<string, GroupState>>();
  return {
    of: async (username) => [...(states.get(username.toLowerCase())?.values() ?? [])],
    async set(username, given) {
      const own = states.get(username.toLowerCase()) ?? new Map<string, GroupState>();
      for (const state of given) own.set(`${state.direction} ${state.name}`, state);
      states.set(username.toLowerCase(), own);
    },
  };
}

/** The fake directory with its groups listed: `cn=<name>,ou=groups,DC=core,DC=holdfast`. */
function listing(directory: ReturnType<typeof fakeDirectory>): CoreDirectory {
  return {
    signIn: (...given) => directory.signIn(...given),
    find: (username) => directory.find(username),
    async groups(containing) {
      if (directory.mood === 'down') throw new AppError('unavailable', 'The directory does not answer');
      const names = [...directory.groups.values()].filter((name) => nameKey(name).includes(nameKey(containing)));
      return names.toSorted().map((name) => ({
        dn: `cn=${name},ou=groups,DC=core,DC=holdfast`,
        name,
        description: name === 'core_Ops' ? 'Operations' : undefined,
        members: [...directory.people.values()]
          .filter(({ groups }) => groups.includes(name))
          .map((one) => one.username),
      }));
    },
  };
}

export function subscription(username: string, input: Partial<Subscription> = {}): Subscription {
  return {
    subscriptionUid: `tls:${username.length}`,
    certificate: clientCertificate(username),
    callsign: username.toUpperCase(),
    clientUid: `uid-${username}`,
    lastReport: new Date(START - 1500),
    takClient: 'ATAK-CIV',
    takVersion: '5.3.0',
    username,
    groups: [
      { name: 'Ops', direction: 'IN' },
      { name: 'Ops', direction: 'OUT' },
    ],
    team: 'Cyan',
    role: 'Team Member',
    address: '127.0.0.1',
    port: 50_001,
    pendingWrites: 0,
    processed: 7,
    protocol: 'tls',
    framing: 'xml',
    ...input,
  };
}

export interface AskOptions {
  as?: CoreCaller;
  body?: string | Uint8Array<ArrayBuffer> | FormData | ReadableStream<Uint8Array>;
  json?: unknown;
  headers?: Record<string, string>;
  socket?: object;
}

export interface AdminAnswer {
  status: number;
  type: string | null;
  text: string;
  bytes: Uint8Array;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into answers of every shape
  body: any;
  headers: Headers;
}

const noVideo: AdminApiOptions['video'] = {
  list: async () => [],
  find: async () => undefined,
  isVisible: async () => false,
  count: async () => 0,
  save: async () => undefined,
  remove: async () => undefined,
};

let template: [path: string, text: string][] | undefined;

/** Files that were made once: the product brings each to the disk, which takes its time. */
function madeDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'holdfast-admin-'));
  if (template === undefined) {
    retentionFiles(dataDir);
    const paths = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.yml'));
    template = paths.map((path) => [path, readFileSync(join(dataDir, path), 'utf8')]);
  }
  for (const [path, text] of template) {
    mkdirSync(dirname(join(dataDir, path)), { recursive: true });
    writeFileSync(join(dataDir, path), text);
  }
  return dataDir;
}

/** `real` parts take the place of those in memory. */
export function adminWorld(real: Partial<AdminApiOptions> = {}) {
  let nowMs = START;
  const now = (): Date => new Date(nowMs);
  const log = memoryLog();
  const people = fakeDirectory(now);
  const directory = listing(people);
  const certificates = memoryCertificates();
  const revoked: { id: number; except: object | undefined }[] = [];
  const revocations: Revocations = {
    isRevoked: () => false,
    async revoke(record, { except } = {}) {
      revoked.push({ id: record.id, except });
      return table.setRevoked(record.id, now());
    },
    refresh: () => Promise.reject(new Error('not asked for here')),
    listTimes: () => ({ thisUpdate: new Date(START), nextUpdate: new Date(START + 7 * DAY_MS) }),
  };
  const subscriptions: Subscription[] = [];
  const notices: ServerEvent[] = [];
  const regrouped: { usernames: readonly string[]; clientUid: string | undefined }[] = [];
  const table = real.certificates ?? certificates;
  let listed = 0;
  const lists = certificateLists({ list: (...wanted) => (listed++, table.list(...wanted)) }, now);
  const dataDir = madeDataDir();
  const groups = real.groups ?? fakeGroupStore(now);
  const files = memoryResources(async () => new Map((await groups.list()).map(({ name, bitpos }) => [bitpos, name])));
  const options: AdminApiOptions = {
    nodeId: NODE_ID,
    hostname: 'cot.example.org',
    publicPort: 8443,
    certificates,
    lists,
    revocations,
    directory,
    groupPrefix: 'core_',
    knownAccount: 'adm_ldapservice',
    people: new PeopleGroups({ directory, memberships: membershipsOf('core_'), now }),
    groups,
    activeGroups: fakeActiveGroups(),
    enrollmentAttempts: { list: () => [] },
    endpoints: { list: async () => [] },
    subscriptions: {
      list: () => subscriptions.slice(),
      end(uid) {
        const at = subscriptions.findIndex((each) => each.subscriptionUid === uid || each.clientUid === uid);
        if (at >= 0) subscriptions.splice(at, 1);
        return at >= 0;
      },
    },
    retention: retentionFiles(dataDir),
    retentionRuns: { begin: () => Promise.reject(new Error('not asked for here')), runs: async () => [] },
    database: {
      cotCount: async () => ({ cotEvents: 3, cotImages: 1 }),
      server: async () => ({ maxConnections: 100, serverVersion: '16.14' }),
    },
    ownProcess: new OwnProcess(dataDir),
    missions: noMissions(),
    history: {
      newest: async () => undefined,
      list: async () => ({ events: [], next: undefined }),
      read: async () => [],
      track: async () => [],
      times: async () => [],
    },
    largeEvents: { find: () => undefined },
    profiles: noProfiles(),
    errorLogs: noErrorLogs(),
    reports: noReports(),
    products: new ProductFiles(join(dataDir, 'update')),
    security: { certificateFile: 'server.pem', caFile: 'ca.pem', validityDays: 365, verify: () => undefined },
    directoryPlace: { url: 'ldaps://directory.example.org', base: 'dc=core' },
    trackWriter: { ids: async () => [], write: async () => undefined },
    archive: { store: () => undefined },
    toPlaces: () => undefined,
    toDevices: () => undefined,
    video: noVideo,
    injectorStore: { list: async () => [], add: async () => undefined, remove: async () => false },
    injectors: { replace: () => undefined },
    emergencies: { list: async () => [], remove: async () => false },
    repeater: { periodMs: 10_000 },
    resources: files.resources,
    resourceWriter: files.resourceWriter,
    spool: testSpool(dataDir),
    toEverybody(event) {
      notices.push(event);
      return subscriptions.length;
    },
    regroup: async (usernames, clientUid) => void regrouped.push({ usernames, clientUid }),
    now,
    log,
    ...real,
  };
  const api = createAdminApi(options);

  async function ask(method: string, path: string, input: AskOptions = {}): Promise<AdminAnswer> {
    const { as = ADMIN, json, socket, headers = {} } = input;
    const body = json === undefined ? input.body : JSON.stringify(json);
    const request = new Request(`https://cot.example.org:8443${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body, duplex: 'half' }),
    });
    const certificate = as.certificate;
    const connection = {
      clientAddress: '127.0.0.1',
      secure: true,
      ...(certificate === undefined ? {} : { certificate }),
      ...(socket === undefined ? {} : { socket }),
    };
    const response = await api(request, connection, as);
    const type = response.headers.get('content-type');
    const bytes = new Uint8Array(await response.arrayBuffer());
    const text = new TextDecoder().decode(bytes);
    return {
      status: response.status,
      type,
      text,
      bytes,
      body: type === 'application/json' && text !== '' ? (JSON.parse(text) as unknown) : undefined,
      headers: response.headers,
    };
  }

  /** A row as enrollment leaves it; the certificate is a real one. */
  async function enrolled(userDn: string, requested: Partial<CertificateRecord> = {}): Promise<CertificateRecord> {
    const { pem, certificate } = await issue(userDn, undefined);
    const signed: SignedCertificate = {
      pem,
      der: new Uint8Array(certificate.rawData),
      serial: certificate.serialNumber,
      hash: clientCertificate(`${userDn}${certificates.rows.length + 1}`).hash,
      subject: `CN=${userDn},OU=CoT,O=Holdfast`,
      commonName: userDn,
      notBefore: new Date(START - DAY_MS / 2),
      notAfter: new Date(START + 365 * DAY_MS),
    };
    const from = { creator: userDn, clientUid: `uid-${userDn}` };
    const { id } = await certificates.add(signed, from, new Date(START));
    const row = Object.assign(certificates.row(id), requested);
    lists.clear();
    return row;
  }

  return {
    options,
    dataDir,
    log,
    files,
    people,
    certificates,
    /** How often the table was asked for a list. */
    listed: () => listed,
    revoked,
    revocations,
    subscriptions,
    told: notices,
    regrouped,
    ask,
    enrolled,
    later: (ms: number) => (nowMs += ms),
    end: () => rmSync(dataDir, { recursive: true }),
  };
}
