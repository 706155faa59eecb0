// Finds the signed-in person's account and devices. Accounts hidden by USERS_HIDDEN_PREFIXES enroll
// no devices. While the identity provider is unavailable, the portal still shows what doesn't need
// it.

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

export type Owner = { kind: 'person'; account: Account } | { kind: 'hidden' } | { kind: 'unknown'; reason: string };

export async function ownerOf(c: PageContext, deps: Deps): Promise<Owner> {
  const { username } = c.get('principal');
  const result = await attempt(() => deps.identity.accounts.named(username));
  if (result.refused !== undefined) return { kind: 'unknown', reason: result.refused.message };
  const account = result.done;
  return account === undefined || isHidden(account, deps) ? { kind: 'hidden' } : { kind: 'person', account };
}

/** A certificate of the person, with its connection. */
export interface OwnDevice {
  certificate: CertificateView;
  /** Undefined when it is not connected. */
  client: CoreClient | undefined;
}

export interface OwnDevices {
  /** Certificates that are neither revoked nor expired. */
  current: OwnDevice[];
  past: CertificateView[];
  /** Connections that match no certificate. */
  unmatched: CoreClient[];
  /** The total number of certificates. */
  count: number;
  /** Why the list is incomplete. */
  problem: string | undefined;
  /** Why the connections are unknown. */
  clientsProblem: string | undefined;
}

export const DEVICES_ON_PAGE = 50;

export async function ownDevices(deps: Deps, username: string, page: number): Promise<OwnDevices> {
  const [listed, connected] = await Promise.all([
    attempt(() => listCertificates(deps, { username, page, pageSize: DEVICES_ON_PAGE })),
    attempt(() => deps.together('clients', () => connectedClients(deps))),
  ]);
  const { results = [], count = 0, certs_error: error } = listed.done ?? {};
  const clients = (connected.done ?? []).filter((client) => nameKey(client.username) === nameKey(username));
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
    clientsProblem: connected.refused?.message,
  };
}

function enrolled({ fingerprint, client_uid, issued_at, revoked_at }: CertificateView): Enrolled {
  return { hash: fingerprint, clientUid: client_uid, issuedAt: issued_at, revokedAt: revoked_at };
}

/** Its callsign while it is connected, otherwise the name of the certificate. */
export function deviceName({ certificate, client }: OwnDevice): string {
  if (client !== undefined && client.callsign !== '') return client.callsign;
  return certificateName(certificate);
}
