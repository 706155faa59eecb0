// Builds the text that a device scans to enroll, in the exact form that each app reads.

import { urlHost, urlsIn } from '@holdfast/kit/addresses';

export interface EnrollmentFacts {
  /** SERVER_ADDRESS. */
  host: string;
  streamingPort: number;
  username: string;
  /** The app password. */
  token: string;
  /** Shown in the app's list of servers. */
  description: string;
  /** A uuid. */
  registrationId: string;
}

export interface EnrollmentLinks {
  /** Has no room for a port: ATAK enrolls on 8446 and streams on 8089. */
  atak: string;
  /** Has no room for the credentials: they are typed. */
  itak: string;
  /** Of TAK Aware and TAK Tracker. */
  takaware: string;
}

/** The ports that are in no link. */
export const USUAL_ENROLLMENT_PORT = 8446;
export const USUAL_STREAMING_PORT = 8089;
export const USUAL_API_PORT = 8443;

export function enrollmentLinks(facts: EnrollmentFacts): EnrollmentLinks {
  const { host, streamingPort, username, token, registrationId } = facts;
  const query = Object.entries({ host, username, token }).map(
    ([name, value]) => `${name}=${encodeURIComponent(value)}`,
  );
  return {
    atak: `tak://com.atakmap.app/enroll?${query.join('&')}`,
    itak: [plainDescription(facts), host, streamingPort, 'SSL'].join(','),
    takaware: JSON.stringify({
      passphrase: 'false',
      type: 'registration',
      serverCredentials: { connectionString: `${urlHost(host)}:${streamingPort}:ssl` },
      userCredentials: { username, password: token, registrationId },
    }),
  };
}

/** One line without commas, which part the members. */
function plainDescription({ description, host }: EnrollmentFacts): string {
  const plain = description
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\s,]+/gu, ' ')
    .trim()
    .slice(0, 60);
  return plain === '' ? host : plain;
}

/** The port of `tls://host:port`, of several the first one's; the usual one where none is said. */
export function streamingPortOf(url: string | undefined): number {
  return portOf(url, USUAL_STREAMING_PORT);
}

/** The same of the core's own API. */
export function apiPortOf(url: string | undefined): number {
  return portOf(url, USUAL_API_PORT);
}

function portOf(url: string | undefined, usual: number): number {
  const port = url === undefined ? '' : new URL(urlsIn(url)[0]).port;
  return port === '' ? usual : Number(port);
}
