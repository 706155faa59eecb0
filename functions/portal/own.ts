// Whose portal it is. Accounts that USERS_HIDDEN_PREFIXES hides are no persons and enroll no devices; while the identity
// provider is away nobody knows, and what does not need it is shown all the same.

import { nameKey } from '@holdfast/kit/names';
import type { CoreClient } from '../../shared/core/port.ts';
import { isHidden } from '../../shared/devices/accounts.ts';
import { listCertificates } from '../../shared/devices/certificates/list.ts';
import type { CertificateView } from '../../shared/devices/certificates/view.ts';
import { clientOfCertificate, connectedClients, type Enrolled } from '../../shared/devices/connections/clients.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { Account } from '../../shared/identity/port.ts';
import { certificateName } from '../pages/certificates/list.tsx';
import { attempt } from '../pages/form.ts';
import type { PageContext } from '../pages/page-routes.ts';

export type Owner =
  | { kind: 'person'; account: Account }
  | { kind: 'hidden' }
  /** With the reason, a sentence. */
  | { kind: 'unknown'; why: string };

export async function ownerOf(c: PageContext, deps: Deps): Promise<Owner> {
  const { username } = c.get('principal');
  const result = await attempt(() => deps.identity.accounts.named(username));
  if (result.refused !== undefined) return { kind: 'unknown', why: result.refused.message };
  const account = result.done;
  return account === undefined || isHidden(account, deps) ? { kind: 'hidden' } : { kind: 'person', account };
}

/** One's own devices: certificates that a device holds, and which of them is connected now. */
export interface OwnDevice {
  certificate: CertificateView;
  /** Connected now. */
  client: CoreClient | undefined;
}

export interface OwnDevices {
  /** What opens the server, or may still. */
  current: OwnDevice[];
  past: CertificateView[];
  /** Connected, with which of the certificates nobody can tell. */
  unmatched: CoreClient[];
  /** How many certificates there are in all. */
  count: number;
  /** Why the list is not whole, or not that of the core. */
  problem: string | undefined;
  /** Why nobody knows who is connected. */
  clientsProblem: string | undefined;
}

export const DEVICES_ON_PAGE = 50;

export async function ownDevices(deps: Deps, username: string, page: number): Promise<OwnDevices> {
  const [listed, requested] = await Promise.all([
    attempt(() => listCertificates(deps, { username, page, pageSize: DEVICES_ON_PAGE })),
    attempt(() => deps.together('clients', () => connectedClients(deps))),
  ]);
  const { results = [], count = 0, certs_error: error } = listed.done ?? {};
  const clients = (requested.done ?? []).filter((client) => nameKey(client.username) === nameKey(username));
  const current = results.filter(({ state }) => state !== 'revoked' && state !== 'expired');
  const all = results.map(enrolled);
  const devices = current.map((certificate) => ({
    certificate,
    client: clientOfCertificate(enrolled(certificate), all, clients),
  }));
  const matched = new Set(devices.map(({ client }) => client));
  return {
    current: devices,
    past: results.filter(({ state }) => state === 'revoked' || state === 'expired'),
    unmatched: clients.filter((client) => !matched.has(client)),
    count,
    problem: listed.refused?.message ?? error,
    clientsProblem: requested.refused?.message,
  };
}

function enrolled({ fingerprint, client_uid, issued_at, revoked_at }: CertificateView): Enrolled {
  return { hash: fingerprint, clientUid: client_uid, issuedAt: issued_at, revokedAt: revoked_at };
}

/** What its person calls it: its callsign while it is connected, else the name it was given. */
export function deviceName({ certificate, client }: OwnDevice): string {
  if (client !== undefined && client.callsign !== '') return client.callsign;
  return certificateName(certificate);
}
