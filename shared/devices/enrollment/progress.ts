// Reports the progress of an enrollment: devices with a certificate, connected devices, and the
// last refusal. A page polls this every few seconds, so all callers share one client list.

import type { EnrollmentAttempt } from '@holdfast/kit/core-wire';
import { isSameUser } from '@holdfast/kit/names';
import type { Core, CoreCertificate } from '../../core/port.ts';
import { isUnavailable } from '../certificates/while-core-is-unavailable.ts';
import { clientOfCertificate, type ConnectedClient, connectedClients, ROUNDED_MS } from '../connections/clients.ts';

export interface EnrolledDevice {
  certificate: CoreCertificate;
  /** Undefined: not connected now. */
  client: ConnectedClient | undefined;
}

export interface EnrollmentProgress {
  /** Newest first. */
  devices: EnrolledDevice[];
  /** The last attempt, when it was refused; a connection only while no device is connected. */
  refused: EnrollmentAttempt | undefined;
  /** Why the core does not tell; undefined when it does. */
  problem: string | undefined;
}

interface ProgressDeps {
  core: Pick<Core, 'certificates' | 'clients' | 'enrollmentAttempts'>;
  together: <T>(key: string, work: () => Promise<T>) => Promise<T>;
}

/** `since`: when the enrollment was issued, ISO 8601. */
export async function enrollmentProgress(
  deps: ProgressDeps,
  username: string,
  since: string,
): Promise<EnrollmentProgress> {
  try {
    const [certificates, clients, attempts] = await Promise.all([
      deps.together(`certificates:${username}`, () => deps.core.certificates(username)),
      deps.together('clients', () => connectedClients(deps)),
      deps.together(`attempts:${username}`, () => deps.core.enrollmentAttempts(username)),
    ]);
    const begin = Date.parse(since) - ROUNDED_MS;
    const own = clients.filter((client) => isSameUser(client.username, username));
    const all = certificates.filter((each) => isSameUser(each.username, username));
    const devices = all
      .filter(({ issuedAt }) => Date.parse(issuedAt) >= begin)
      .toSorted((a, b) => b.issuedAt.localeCompare(a.issuedAt) || a.hash.localeCompare(b.hash))
      .map((certificate) => ({ certificate, client: clientOfCertificate(certificate, all, own) }));
    const [last] = (attempts ?? []).filter(({ at }) => Date.parse(at) >= begin);
    const isOver =
      last?.result === 'signed' ||
      (last?.result === 'not connected' && devices.some(({ client }) => client !== undefined));
    return { devices, refused: isOver ? undefined : last, problem: undefined };
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return { devices: [], refused: undefined, problem: error.message };
  }
}
