// Whom a port lets in by the certificate of the handshake. A resumed session counts for nothing by itself: Node takes one
// without a certificate for authorized, and a certificate may have expired or been revoked since the ticket was given out.

import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { KnownCertificate, Revocations } from '../model/parts.ts';
import { readClientCertificate, usagesOf } from './client-certificate.ts';

export type Refusal = 'none' | 'untrusted' | 'not valid now' | 'revoked';

export interface Admission {
  /** Reads the certificate of a finished handshake, full or resumed; says why it does not count. */
  check(socket: TLSSocket): KnownCertificate | Refusal;
  /** Asked again at every request. */
  refusal(known: KnownCertificate): 'not valid now' | 'revoked' | undefined;
}

export interface AdmissionOptions {
  /** The CA certificate, PEM. */
  ca: string;
  revocations: Pick<Revocations, 'isRevoked'>;
  now: () => Date;
}

const MOST_REMEMBERED = 4096;
const CLIENT_USAGE = '1.3.6.1.5.5.7.3.2';
const SERVER_USAGE = '1.3.6.1.5.5.7.3.1';

export function createAdmission({ ca, revocations, now }: AdmissionOptions): Admission {
  const authority = new X509Certificate(ca);
  const remembered = new Map<string, KnownCertificate>();

  /**
   * Everything is checked here too, once for each certificate: a client that was refused may have got a ticket before, and
   * a session resumed with it counts as authorized.
   */
  function known(shown: X509Certificate): KnownCertificate | undefined {
    const key = shown.fingerprint256;
    const found = remembered.get(key);
    if (found !== undefined) return found;
    const usages = usagesOf(shown);
    // A server's certificate names both usages, and stands in no table from which it could be revoked.
    // One without usages is good for all of them (RFC 5280, 4.2.1.12): an administrator has made it with the CA's key.
    const names = usages.includes(CLIENT_USAGE) && !usages.includes(SERVER_USAGE);
    const forClients = !shown.ca && (usages.length === 0 || names);
    if (!forClients || !shown.checkIssued(authority) || !shown.verify(authority.publicKey)) return undefined;
    const read = {
      certificate: readClientCertificate(shown),
      notBefore: shown.validFromDate.getTime(),
      notAfter: shown.validToDate.getTime(),
    };
    const oldest = remembered.keys().next();
    if (remembered.size >= MOST_REMEMBERED && oldest.done !== true) remembered.delete(oldest.value);
    remembered.set(key, read);
    return read;
  }

  function refusal({ certificate, notBefore, notAfter }: KnownCertificate): 'not valid now' | 'revoked' | undefined {
    const at = now().getTime();
    if (at < notBefore || at > notAfter) return 'not valid now';
    return revocations.isRevoked(certificate.serial) ? 'revoked' : undefined;
  }

  return {
    refusal,
    check(socket) {
      const shown = socket.getPeerX509Certificate();
      if (shown === undefined) return 'none';
      const read = socket.authorized ? known(shown) : undefined;
      return read === undefined ? 'untrusted' : (refusal(read) ?? read);
    },
  };
}
