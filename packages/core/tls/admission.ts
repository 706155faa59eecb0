// Admits connections by client certificate. Doesn't trust resumed sessions: Node authorizes one
// without a certificate, and a certificate may have expired or been revoked since the ticket was
// issued.

import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import * as x509 from '@peculiar/x509';
import { CHANNELS_USAGE } from '@holdfast/pki/authority';
import { normalSerial } from '@holdfast/pki/keys';
import { readSubject } from '@holdfast/pki/subject';
import type { ClientCertificate, KnownCertificate, Revocations } from '../model/parts.ts';

/** What the core reads in a certificate that a client shows, or that stands in its table. */
export function readClientCertificate(certificate: X509Certificate): ClientCertificate {
  return {
    ...readSubject(new x509.X509Certificate(certificate.raw)),
    serial: serialOf(certificate),
    hash: certificate.fingerprint256,
    channels: usagesOf(certificate).includes(CHANNELS_USAGE),
  };
}

/** Object identifiers of the extended key usages. */
export function usagesOf(certificate: X509Certificate): string[] {
  const usages: string[] | undefined = certificate.keyUsage;
  return usages ?? [];
}

/** Lower-case hex without leading zeros. */
export function serialOf(certificate: X509Certificate): string {
  return normalSerial(certificate.serialNumber);
}

/** `username`: of a certificate that is ours. */
export interface Refused {
  refusal: 'none' | 'untrusted' | 'not valid now' | 'revoked';
  username?: string;
}

export interface AdmissionOptions {
  /** The CA certificate, PEM. */
  ca: string;
  revocations: Pick<Revocations, 'isRevoked'>;
  now: () => Date;
}

const MAX_REMEMBERED = 4096;
const CLIENT_USAGE = '1.3.6.1.5.5.7.3.2';
const SERVER_USAGE = '1.3.6.1.5.5.7.3.1';

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #authority;
  readonly #remembered = new Map<string, KnownCertificate>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#authority = new X509Certificate(options.ca);
  }

  /** Asked again at every request. */
  refusal({ certificate, notBefore, notAfter }: KnownCertificate): 'not valid now' | 'revoked' | undefined {
    const at = this.#options.now().getTime();
    if (at < notBefore || at > notAfter) return 'not valid now';
    return this.#options.revocations.isRevoked(certificate.serial) ? 'revoked' : undefined;
  }

  /** Reads the certificate of a finished handshake, full or resumed; says why it does not count. */
  check(socket: TLSSocket): KnownCertificate | Refused {
    const shown = socket.getPeerX509Certificate();
    if (shown === undefined) return { refusal: 'none' };
    const read = socket.authorized ? this.#known(shown) : undefined;
    if (read === undefined) return { refusal: 'untrusted' };
    const refusal = this.refusal(read);
    return refusal === undefined ? read : { refusal, username: read.certificate.commonName };
  }

  /**
   * Everything is checked here too, once for each certificate: a client that was refused may have
   * got a ticket before, and a session resumed with it counts as authorized.
   */
  #known(shown: X509Certificate): KnownCertificate | undefined {
    const key = shown.fingerprint256;
    const found = this.#remembered.get(key);
    if (found !== undefined) return found;
    const usages = usagesOf(shown);
    // A server's certificate names both usages, and stands in no table from which it could be
    // revoked. One without usages is good for all of them (RFC 5280, 4.2.1.12): an administrator
    // has made it with the CA's key.
    const names = usages.includes(CLIENT_USAGE) && !usages.includes(SERVER_USAGE);
    const forClients = !shown.ca && (usages.length === 0 || names);
    if (!forClients || !shown.checkIssued(this.#authority) || !shown.verify(this.#authority.publicKey))
      return undefined;
    const read = {
      certificate: readClientCertificate(shown),
      notBefore: shown.validFromDate.getTime(),
      notAfter: shown.validToDate.getTime(),
    };
    const oldest = this.#remembered.keys().next();
    if (this.#remembered.size >= MAX_REMEMBERED && oldest.done !== true) this.#remembered.delete(oldest.value);
    this.#remembered.set(key, read);
    return read;
  }
}
