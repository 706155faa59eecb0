// Checks that the restored data serves: sign-in, a device from enrollment to a stored event, and
// the newest event of the archive. All of it happens in the scratch instance.

import { join } from 'node:path';
import { z } from 'zod';
import { AppError, StackError } from '@holdfast/kit/app-error';
import { limitConcurrency } from '@holdfast/kit/concurrency';
import { LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import { grouped } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import { PROBE_ACCOUNT, PROBE_GROUP } from '@holdfast/kit/names';
import { withDatabase } from '@holdfast/kit/postgres';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { Secret } from '@holdfast/kit/secret';
import { TlsCoreDevices } from '../../../shared/core/devices/devices.ts';
import { HttpEnrollment } from '../../../shared/core/devices/enrollment.ts';
import type { EnrolledCertificate } from '../../../shared/core/devices/port.ts';
import { CorePort } from '../../../shared/core/request.ts';
import { runProbe } from '../../../shared/devices/connections/probe.ts';
import { enrollAccount } from '../../../shared/devices/enroll-account.ts';
import { httpIdentity } from '../../../shared/identity/authentik/http.ts';
import type { Identity } from '../../../shared/identity/port.ts';
import { LdapDirectory } from '../../../shared/sign-in/ldap/directory.ts';

/** One row of cot_router. */
export interface KnownEvent {
  id: string;
  uid: string;
}

export interface Served {
  /** Of the scratch instance. */
  urls: { identity: string; ldap: string; coreApi: string; enrollment: string; streaming: string };
  /** The core's directory. */
  coreDirectory: string;
  database: Secret;
  bases: { core: string; web: string };
  identityToken: Secret | undefined;
  ldapPassword: Secret | undefined;
}

export interface ExpectedEvents {
  /** Rows of cot_router in the archive; undefined if its history was left out. */
  rows: number | undefined;
  newest: KnownEvent | undefined;
}

export type Check = <T>(name: string, work: () => Promise<{ detail: string; value?: T }>) => Promise<T | undefined>;

const WITHIN_MS = MINUTE_MS;
const COUNT = '/Marti/api/database/cotCount';
const countSchema = z.looseObject({ cotEvents: z.number() });

/** Throws the first failure; `check` records each step. */
export async function checkServed(served: Served, expected: ExpectedEvents, check: Check, log: Log): Promise<void> {
  const identity = httpIdentity({
    url: served.urls.identity,
    token: requireSecret(served.identityToken, 'IDENTITY_TOKEN'),
    fetch,
    exclusive: serialized(),
  });
  const directory = new LdapDirectory({
    url: served.urls.ldap,
    coreBase: served.bases.core,
    webBase: served.bases.web,
    serviceAccount: {
      username: LDAP_SERVICE_ACCOUNT,
      password: requireSecret(served.ldapPassword, 'LDAP_BIND_PASSWORD'),
    },
    log,
  });
  await check('known event', async () => ({ detail: await findEvents(served, expected) }));
  await check('sign-in', async () => {
    const members = await directory.probe('core', PROBE_GROUP);
    if (members === undefined)
      throw new StackError(
        `The restored directory has no group ${PROBE_GROUP}.`,
        'make a new backup once the stack has run for a minute',
      );
    return { detail: `${LDAP_SERVICE_ACCOUNT} signed in over LDAP and found ${PROBE_GROUP}` };
  });
  const certificate = await check('enrollment', async () => {
    const enrolled = await enrollProbe(identity, served);
    return { detail: `${PROBE_ACCOUNT} got a certificate of the restored CA`, value: enrolled };
  });
  if (certificate === undefined) return;
  await check('device', async () => ({ detail: await probeDevice(served, { identity, directory, certificate }) }));
}

async function enrollProbe(identity: Identity, { urls, coreDirectory }: Served): Promise<EnrolledCertificate> {
  const account = await identity.accounts.named(PROBE_ACCOUNT);
  if (account === undefined)
    throw new StackError(
      `The restored identity provider has no account ${PROBE_ACCOUNT}.`,
      'make a new backup once the stack has run for a minute',
    );
  const coreEnrollment = new HttpEnrollment({ url: urls.enrollment, dataDir: coreDirectory });
  return enrollAccount({ identity, coreEnrollment, now: () => new Date() }, account, 'holdfast-proof');
}

async function probeDevice(
  { urls, coreDirectory, database }: Served,
  {
    identity,
    directory,
    certificate,
  }: { identity: Identity; directory: LdapDirectory; certificate: EnrolledCertificate },
): Promise<string> {
  const { hash, serial, issuedAt, expiresAt } = certificate;
  const made = { hash, serial, issuedAt, expiresAt, username: PROBE_ACCOUNT, name: '', clientUid: 'holdfast-proof' };
  const stages = await runProbe({
    now: () => new Date(),
    identity,
    directory,
    certificateStore: { made: async () => [made], revocations: async () => [] },
    clientKeys: { kept: async (hashes) => [...hashes] },
    coreDevices: new TlsCoreDevices({
      apiUrl: urls.coreApi,
      streamingUrl: urls.streaming,
      caFile: join(coreDirectory, 'certs/files/ca.pem'),
      clientKeys: { read: async () => certificate },
    }),
    coreDatabase: { hasEvent: async (uid) => (await eventsNamed(database, uid)) > 0 },
  });
  const failed = stages.find(({ ok }) => !ok);
  if (failed !== undefined) throw new StackError(`${failed.stage}: ${failed.problem}`, 'make a new backup');
  return `an event went from one connection to another and was stored (${stages.map(({ stage }) => stage).join(', ')})`;
}

async function eventsNamed(database: Secret, uid: string): Promise<number> {
  return withDatabase(database, 'holdfast-proof', WITHIN_MS, async (sql) => {
    const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM cot_router WHERE uid = ${uid}`;
    return row?.count ?? 0;
  });
}

/** Through the API of the core, as a client of the core sees the history, and in its table. */
async function findEvents(
  { urls, coreDirectory, database }: Served,
  { rows, newest }: ExpectedEvents,
): Promise<string> {
  if (rows === undefined) return 'the history was left out of this backup';
  const port = new CorePort({
    url: urls.coreApi,
    variable: 'CORE_API_URL',
    name: 'The restored core',
    dataDir: coreDirectory,
    trust: 'own',
    connections: 1,
  });
  try {
    const calls = port.within(WITHIN_MS);
    const { cotEvents: events } = calls.read(`GET ${COUNT}`, await calls.ask('GET', COUNT), countSchema);
    if (events !== rows)
      throw new AppError(
        'upstream',
        `The restored core shows ${grouped(events)} events, and the archive has ${grouped(rows)}.`,
      );
  } finally {
    await port.connections.close();
  }
  if (newest === undefined) return 'the history has no events';
  const found = await withDatabase(database, 'holdfast-proof', WITHIN_MS, async (sql) => {
    return sql`SELECT FROM cot_router WHERE id = ${newest.id}::bigint AND uid = ${newest.uid}`;
  });
  if (found.length !== 1)
    throw new AppError('upstream', 'The newest event of the archive is missing in the restored core.');
  return `the core shows all ${grouped(rows)} events, with the newest one`;
}

function serialized(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const inTurn = limitConcurrency(1);
  return (_key, work) => inTurn(work);
}

function requireSecret(secret: Secret | undefined, name: string): Secret {
  if (secret !== undefined) return secret;
  throw new StackError(`The archive holds no ${name}.`, 'keep it in .env or secrets.json, and make a new backup');
}
