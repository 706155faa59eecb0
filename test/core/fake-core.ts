// A core in memory: it enrolls, revokes, lists, and meets devices, as long as its mood allows.

import { randomBytes } from 'node:crypto';
import { AppError } from '@holdfast/kit/app-error';
import type { CoreCluster, CoreNode } from '@holdfast/kit/core-wire';
import type { EnrollmentAttempt } from '@holdfast/kit/core-wire';
import { nameKey } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import type { ClientKeys, CoreDevices, CoreEnrollment, KeptKey } from '../../shared/core/devices/port.ts';
import type {
  Core,
  CoreAuthority,
  CoreCertificate,
  CoreClient,
  CorePlugin,
  CoreStatus,
  CoreStreamFacts,
} from '../../shared/core/port.ts';
import type { AdminGrants, Bundles } from '../../shared/devices/port.ts';

export interface FakeCore {
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  coreAuthority: CoreAuthority;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Bundles;
  /** `down`: nothing of it answers. */
  mood: 'up' | 'down';
  /** False: revoked certificates are let in all the same. */
  enforces: boolean;
  /** False: the list is not written. */
  writesList: boolean;
  certificates: CoreCertificate[];
  clients: CoreClient[];
  plugins: CorePlugin[];
  /** Whose groups were taken anew, in turn. */
  regrouped: string[];
  /** Connections that `clients` does not tell. */
  unlisted: Set<string>;
  attempts: EnrollmentAttempt[] | undefined;
  status: CoreStatus;
  stream: CoreStreamFacts | undefined;
  /** Fingerprint of the CA certificate. */
  ca: string;
  /** Fingerprints of those that stand in `ca.pem` after it. */
  further: string[];
  /** ISO 8601: no certificate ends later. */
  caEnds: string;
  /** Of certificates. */
  validityDays: number;
  /** Usernames that have the right of the admin API, by hash. */
  admins: Map<string, string>;
  /** How many calls of the admin API there were. */
  calls: number;
  /** A device enrolls by itself. */
  enrolledByDevice(username: string, clientUid?: string): CoreCertificate;
  /** It connects to the stream. */
  online(username: string, uid?: string): CoreClient;
}

export interface FakeCoreOptions {
  now: () => Date;
  /** Whether name and password are right. */
  accepts: (username: string, password: string) => boolean;
}

export function fakeCore({ now, accepts }: FakeCoreOptions): FakeCore {
  const keys = new Map<string, KeptKey>();
  const listed = new Set<string>();
  const streams = new Map<string, { hash: string; received: string[] }>();
  let connections = 0;
  let mood: FakeCore['mood'] = 'up';

  function reach(): void {
    if (mood === 'down') throw new AppError('unavailable', 'The core does not answer');
  }
  function request(): void {
    fake.calls += 1;
    reach();
  }
  const find = (hash: string): CoreCertificate | undefined =>
    fake.certificates.find((each) => each.hash === hash.toUpperCase());
  const isRefused = (hash: string): boolean => {
    const found = find(hash);
    return found === undefined || (fake.enforces && found.revokedAt !== null) || found.expiresAt <= now().toISOString();
  };
  function held(hash: string): void {
    if (!keys.has(hash)) throw new AppError('not_found', `No key is kept for ${hash}`);
  }

  function signed(username: string, clientUid: string): CoreCertificate {
    const serial = `1${randomBytes(15).toString('hex')}`;
    const hash = Array.from(randomBytes(32), (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(':');
    const certificate: CoreCertificate = {
      hash,
      serial,
      username,
      clientUid,
      issuedAt: now().toISOString(),
      expiresAt: new Date(
        Math.min(now().getTime() + fake.validityDays * DAY_MS, Date.parse(fake.caEnds)),
      ).toISOString(),
      revokedAt: null,
      pem: pemOf(hash),
    };
    fake.certificates.push(certificate);
    return certificate;
  }

  const fake: FakeCore = {
    get mood() {
      return mood;
    },
    set mood(value) {
      mood = value;
      // What was open does not come back with it.
      if (value === 'down') streams.clear();
    },
    enforces: true,
    writesList: true,
    certificates: [],
    clients: [],
    plugins: [],
    regrouped: [],
    unlisted: new Set(),
    attempts: [],
    status: { version: '5.7-RELEASE-0', startedAt: '2026-03-04T05:00:00.000Z', memory: null },
    stream: { clients: 0, maxClients: 5_000, thinningSeconds: 0 },
    ca: 'CA:01',
    further: [],
    caEnds: '2036-01-01T00:00:00.000Z',
    validityDays: 365,
    admins: new Map(),
    calls: 0,
    enrolledByDevice: (username, clientUid = 'ANDROID-1') => signed(username, clientUid),
    online(username, uid = `uid-${username}`) {
      connections += 1;
      const at = now().toISOString();
      const client: CoreClient = {
        uid,
        connection: `tls:${connections}`,
        callsign: username.toUpperCase(),
        username,
        groups: [],
        team: 'Cyan',
        role: 'Team Member',
        device: 'ATAK 5.1',
        address: '192.0.2.9',
        framing: 'protobuf',
        since: at,
        lastReport: at,
      };
      fake.clients.push(client);
      return client;
    },

    core: {
      async certificates(username) {
        request();
        // As a release: in exactly this spelling.
        return fake.certificates
          .filter((each) => username === undefined || each.username === username)
          .map((each) => ({ ...each }));
      },
      async certificate(hash) {
        request();
        const found = find(hash);
        return found && { ...found };
      },
      async revokedCertificates() {
        request();
        return fake.certificates.filter(({ revokedAt }) => revokedAt !== null).map((each) => ({ ...each }));
      },
      async revoke(hash) {
        request();
        const found = find(hash);
        if (found === undefined) throw new AppError('not_found', `The core has no certificate ${hash}`);
        found.revokedAt ??= now().toISOString();
        if (fake.writesList) listed.add(found.serial);
        if (fake.enforces) for (const [id, stream] of streams) if (stream.hash === hash) streams.delete(id);
        return { ...found };
      },
      async clients() {
        request();
        return fake.clients.map((each) => ({ ...each }));
      },
      async disconnect(uid) {
        request();
        const named = fake.clients.filter(({ connection }) => uid !== '' && connection === uid);
        const meant = named.length > 0 ? named : fake.clients.filter((each) => uid !== '' && each.uid === uid);
        fake.clients = fake.clients.filter((each) => !meant.includes(each));
        return meant.length > 0;
      },
      async endConnection(connection) {
        request();
        const wasThere =
          fake.clients.some((each) => each.connection === connection) || fake.unlisted.delete(connection);
        fake.clients = fake.clients.filter((each) => each.connection !== connection);
        return wasThere;
      },
      async regroup(username) {
        request();
        fake.regrouped.push(username);
      },
      async plugins() {
        request();
        return fake.plugins.map((each) => ({ ...each }));
      },
      async changePlugin(name, change) {
        request();
        const found = fake.plugins.find((each) => each.name === name);
        if (found === undefined) throw new AppError('not_found', `The core has no plugin ${name}`);
        Object.assign(found, change);
        return { ...found };
      },
      async status() {
        request();
        return { ...fake.status };
      },
      async stream() {
        request();
        return fake.stream;
      },
      async enrollmentAttempts(username) {
        request();
        return fake.attempts?.filter((each) => nameKey(each.username) === nameKey(username));
      },
    },

    coreEnrollment: {
      async enroll({ username, password, clientUid }) {
        reach();
        if (!accepts(username, password)) throw new AppError('forbidden', `The core does not let ${username} in`);
        const { hash, serial, issuedAt, expiresAt, pem } = signed(username, clientUid);
        return {
          hash,
          serial,
          issuedAt,
          expiresAt,
          certificatePem: pem,
          chainPem: [pemOf(fake.ca)],
          keyPem: `-----BEGIN PRIVATE KEY-----\n${hash}\n-----END PRIVATE KEY-----\n`,
        };
      },
      async rules({ username, password }) {
        reach();
        if (!accepts(username, password)) throw new AppError('forbidden', `The core does not let ${username} in`);
        return { O: 'Holdfast', OU: 'CoT' };
      },
      async token({ username, password }) {
        reach();
        const wrong = { error: 'invalid_grant', error_description: 'Wrong username or password.' };
        if (!accepts(username, password)) return { status: 401, json: JSON.stringify(wrong), cookies: [] };
        const token = randomBytes(24).toString('base64url');
        const json = JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 3600 });
        return { status: 200, json, cookies: [`access_token_0=${token}; Path=/; HttpOnly; Secure; SameSite=Strict`] };
      },
    },

    coreDevices: {
      async roles(hash) {
        held(hash);
        reach();
        if (isRefused(hash)) return undefined;
        return fake.admins.has(hash) ? ['ROLE_ADMIN'] : ['ROLE_ANONYMOUS'];
      },
      async connect(hash, at) {
        held(hash);
        reach();
        const node = fake.stream?.cluster?.nodes.find(({ streaming }) => streaming === at);
        if (node !== undefined && node.state !== 'up')
          throw new AppError('unavailable', `The core at ${node.streaming} refuses connections.`);
        if (isRefused(hash)) return { refused: 'the core ended the connection' };
        connections += 1;
        const connection = `held:${connections}`;
        streams.set(connection, { hash, received: [] });
        return { connection, milliseconds: 5 };
      },
      async answers(connection) {
        return streams.has(connection);
      },
      async send(connection, event) {
        if (!streams.has(connection)) throw new AppError('unavailable', 'The connection to the core has ended');
        for (const [id, { received }] of streams) if (id !== connection) received.push(event);
      },
      async received(connection, uid) {
        const found = streams.get(connection)?.received.some((event) => event.includes(`uid="${uid}"`));
        return found === true ? 3 : undefined;
      },
      async close(connection) {
        streams.delete(connection);
      },
    },

    coreAuthority: {
      async certificate() {
        return { chainPem: [fake.ca, ...fake.further].map(pemOf), fingerprint: fake.ca, expiresAt: fake.caEnds };
      },
      async revocationList() {
        const at = now();
        return {
          pem: '-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n',
          serials: [...listed],
          thisUpdate: at.toISOString(),
          nextUpdate: new Date(at.getTime() + 7 * DAY_MS).toISOString(),
          ours: true,
        };
      },
    },

    adminGrants: {
      async give(username, certificatePem) {
        const found = fake.certificates.find(({ pem }) => pem === certificatePem);
        if (found !== undefined) fake.admins.set(found.hash, username);
      },
      async take(username) {
        for (const [hash, name] of fake.admins) if (name === username) fake.admins.delete(hash);
      },
    },

    clientKeys: {
      async keep(hash, key) {
        keys.set(hash, { ...key });
      },
      read: async (hash) => keys.get(hash),
      kept: async (hashes) => hashes.filter((hash) => keys.has(hash)),
      async remove(hash) {
        keys.delete(hash);
      },
    },

    bundles: {
      withKey: async ({ certificatePem }, { friendlyName, legacy = false }) =>
        Buffer.from(JSON.stringify({ certificatePem, friendlyName, legacy })).toString('base64'),
      trust: async (chainPem) => Buffer.from(JSON.stringify({ chainPem })).toString('base64'),
    },
  };
  return fake;
}

function pemOf(text: string): string {
  return `-----BEGIN CERTIFICATE-----\n${Buffer.from(text).toString('base64')}\n-----END CERTIFICATE-----\n`;
}

/** Three nodes, of which `core` was asked; change a member to change one. */
export function threeNodes(): CoreCluster {
  const nodes = ['core', 'core-2', 'core-3'].map((node, index): CoreNode => ({
    node,
    state: 'up',
    heardAt: '2026-03-04T05:06:00.000Z',
    startedAt: '2026-03-04T05:00:00.000Z',
    version: '5.7-RELEASE-0',
    api: `https://192.0.2.${index + 1}:8443`,
    enrollment: `https://192.0.2.${index + 1}:8446`,
    streaming: `tls://192.0.2.${index + 1}:8089`,
    clients: 10 * index,
    maxClients: 1_000,
    memoryBytes: 300e6,
    memoryCapBytes: 1e9,
  }));
  return { node: 'core', isBusUp: true, nodes };
}
