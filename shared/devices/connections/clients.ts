// Lists connected clients, and disconnects them, also permanently. The stack's own connections are
// hidden.

import { AppError } from '@holdfast/kit/app-error';
import {
  CANARY_ACCOUNT,
  CHANNEL_PREFIX,
  isSameUser,
  nameKey,
  PROBE_ACCOUNT,
  UNGROUPED_GROUP,
} from '@holdfast/kit/names';
import { audited } from '../../audit/audited.ts';
import type { Actor, Audit } from '../../audit/port.ts';
import type { Core, CoreCertificate, CoreClient } from '../../core/port.ts';
import type { PeopleContext } from '../accounts.ts';
import type { CertificateStore, Revocation } from '../port.ts';
import { revokeCertificate } from '../revocation/revoke.ts';
import { hasEnded } from '../rules.ts';

export interface ConnectedClient extends CoreClient {
  /** The core's own name of the connection as long as the device has not reported. */
  uid: string;
  /** With `core_`, sorted; empty for those who are in none. */
  groups: string[];
}

interface ClientsDeps {
  core: Pick<Core, 'clients'>;
}

interface DisconnectDeps {
  core: Pick<Core, 'clients' | 'disconnect'>;
  audit: Pick<Audit, 'intend' | 'conclude'>;
}

const OWN = new Set([PROBE_ACCOUNT, CANARY_ACCOUNT]);
const UNGROUPED_CHANNEL = UNGROUPED_GROUP.slice(CHANNEL_PREFIX.length).replace(/_READ$/, '');
/** A core that was set up otherwise gives it to whoever is in no group. */
const ANONYMOUS_CHANNEL = '__ANON__';

/** By callsign. */
export async function connectedClients({ core }: ClientsDeps): Promise<ConnectedClient[]> {
  return visibleClients(await core.clients());
}

/** Without the stack's own, by callsign, with groups and uid as `ConnectedClient` has them. */
export function visibleClients<C extends CoreClient>(clients: readonly C[]): C[] {
  const visible = clients.filter(({ username }) => !OWN.has(nameKey(username)));
  return visible.map(shown).toSorted(byCallsign);
}

/** By connection, which no device can choose, else by uid; `not_found` when there is none. */
export async function connectedClient(deps: ClientsDeps, uid: string): Promise<ConnectedClient> {
  return chosen(await connectedClients(deps), uid);
}

function chosen(clients: readonly ConnectedClient[], uid: string): ConnectedClient {
  const found = clients.find(({ connection }) => connection === uid) ?? clients.find((each) => each.uid === uid);
  if (found === undefined) throw notConnected(uid);
  return found;
}

/**
 * That connection, else every one that the person of the first with that uid has under it: nobody
 * else who has chosen the same. The device may come back as long as its certificate is good.
 */
export async function disconnectClient(deps: DisconnectDeps, actor: Actor, uid: string): Promise<ConnectedClient> {
  const clients = await connectedClients(deps);
  const client = chosen(clients, uid);
  const { username, callsign, address } = client;
  const isOne = client.connection === uid;
  const meant = isOne ? [client] : clients.filter((each) => each.uid === uid && isSameUser(each.username, username));
  const connections = meant.map((each) => (each.connection === '' ? each.uid : each.connection));
  const detail = { username, callsign, address, connections };
  await audited(deps, { actor, action: 'client.disconnect', target: client.uid, detail }, async () => {
    const ended: boolean[] = [];
    for (const connection of connections) ended.push(await deps.core.disconnect(connection));
    if (!ended.includes(true)) throw notConnected(uid);
  });
  return client;
}

function shown<C extends CoreClient>(client: C): C {
  const { uid, connection, groups } = client;
  return {
    ...client,
    uid: uid === '' ? connection : uid,
    groups: groups
      .filter((name) => name !== UNGROUPED_CHANNEL)
      .map((name) => (name === ANONYMOUS_CHANNEL ? name : CHANNEL_PREFIX + name))
      .toSorted(),
  };
}

function byCallsign(one: ConnectedClient, other: ConnectedClient): number {
  const [a, b] = [one, other].map(({ callsign, uid }) => `${callsign.toLowerCase()}\0${uid}`) as [string, string];
  return a < b ? -1 : 1;
}

function notConnected(uid: string): AppError {
  return new AppError(
    'not_found',
    `There is no connected client with the uid ${JSON.stringify(uid)}. GET /api/clients lists them.`,
  );
}

/**
 * Which connection a certificate has: cores name no certificate per connection, only what the
 * device calls itself and since when it is there.
 */
export type Enrolled = Pick<CoreCertificate, 'hash' | 'clientUid' | 'issuedAt' | 'revokedAt'>;

/** The core counts in seconds. */
export const ROUNDED_MS = 2_000;

/**
 * A connection is that of the newest certificate in force that there was when it began: a device
 * that has enrolled again still streams with the old one. `all` and `clients` are those of one
 * user; since when is null where the core does not say it.
 */
export function clientOfCertificate<C extends Pick<CoreClient, 'uid' | 'since'>>(
  certificate: Enrolled,
  all: readonly Enrolled[],
  clients: readonly C[],
): C | undefined {
  const { clientUid, hash } = certificate;
  if (clientUid === '') return undefined;
  const ofDevice = all
    .filter((each) => each.clientUid === clientUid && each.revokedAt === null)
    .toSorted((a, b) => b.issuedAt.localeCompare(a.issuedAt));
  return clients.find(({ uid, since }) => {
    const latest = since === null ? Number.POSITIVE_INFINITY : Date.parse(since) + ROUNDED_MS;
    return uid === clientUid && ofDevice.find(({ issuedAt }) => Date.parse(issuedAt) <= latest)?.hash === hash;
  });
}

/**
 * Revokes the certificate of a connected device, then ends its connection. A core names no
 * certificate per connection: it is the one that was enrolled under the uid of the device, else the
 * only one that its user has.
 */
export interface ShutOutContext extends PeopleContext {
  deps: PeopleContext['deps'] & {
    core: Pick<Core, 'clients' | 'disconnect' | 'certificates'>;
    certificateStore: Pick<CertificateStore, 'revocations'>;
    audit: Pick<Audit, 'intend' | 'conclude'>;
  };
}

export interface ShutOut {
  client: ConnectedClient;
  /**
   * Of its certificates; none: nobody can tell which one it has come with, and nothing was done.
   */
  revocations: Revocation[];
}

/**
 * `not_found` when it is not connected any more; what cannot be ended at once is ended by the proof
 * of the revocation.
 */
export async function shutOutDevice(context: ShutOutContext, uid: string): Promise<ShutOut> {
  const { deps, actor } = context;
  const client = await connectedClient(deps, uid);
  const revocations: Revocation[] = [];
  for (const certificate of await certificatesOfDevice(context, client))
    revocations.push(await revokeCertificate(context, certificate));
  if (revocations.length > 0) await disconnectClient(deps, actor, client.connection).catch(leftToTheProof);
  return { client, revocations };
}

async function certificatesOfDevice(
  { deps }: ShutOutContext,
  { uid, username }: ConnectedClient,
): Promise<CoreCertificate[]> {
  const inForce = (await deps.core.certificates(username)).filter(
    (each) => isSameUser(each.username, username) && each.revokedAt === null && !hasEnded(each, deps.now()),
  );
  const own = inForce.filter(({ clientUid }) => clientUid === uid);
  if (own.length > 0) return own;
  return inForce.length === 1 ? inForce : [];
}

/**
 * Rule `leftToTheProof`: the core ends the connection by itself as a rule, and a job looks whether
 * it has.
 */
function leftToTheProof(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}
