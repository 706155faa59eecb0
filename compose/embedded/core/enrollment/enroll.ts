// One enrollment: a signing request becomes a certificate that the core knows.

import { AppError } from '../../../../shared/domain/app-error.ts';
import { CoreFault } from '../http/answers.ts';
import type { Authority, CertificateStore, SignedCertificate } from '../parts.ts';
import type { EnrollmentEvents } from './events.ts';
import { unauthorized } from './refusal.ts';
import type { SignedIn } from './sign-in.ts';
import { publicKeyFor, RequestRefused } from './signing-request.ts';

export interface EnrollOptions {
  authority: Pick<Authority, 'issue'>;
  certificates: Pick<CertificateStore, 'add'>;
  events: EnrollmentEvents;
  now: () => Date;
}

export interface EnrollmentOrder {
  /** PKCS#10 as it came. */
  request: string;
  /** May be empty. */
  clientUid: string;
  /** The client has told its version: it knows channels. */
  channels: boolean;
  /** Of the client. */
  address: string;
}

/**
 * Signs, records, and only then hands out. Throws CoreFault for a request that breaks the rules, and a Refusal when the
 * account was closed or its password ended meanwhile: what is recorded then, nobody has got.
 */
export function createEnroll({ authority, certificates, events, now }: EnrollOptions) {
  return async function enroll({ entry, opens }: SignedIn, order: EnrollmentOrder): Promise<SignedCertificate> {
    const { username } = entry;
    const { clientUid, channels, address } = order;
    const at = now();
    const publicKey = requestedKey(username, order);
    const signed = await authority.issue({ publicKey, commonName: username, channels }, at).catch((error: unknown) => {
      throw unfitName(error, username, order);
    });
    await certificates.add(signed, { creator: username, clientUid }, at);
    // Whoever closes the account after this finds the certificate among those to revoke.
    if (!(await opens('core'))) {
      const reason = 'the account was closed, or its password changed, while the certificate was made';
      events.failed('password', { address, user: username, clientUid, reason });
      throw unauthorized('The name or the password is not valid any more.');
    }
    events.signed({ user: username, clientUid, hash: signed.hash, serial: signed.serial, address });
    return signed;
  };

  /** A name of the directory that no certificate can have is no failure of the core. */
  function unfitName(error: unknown, user: string, { clientUid, address }: EnrollmentOrder): unknown {
    if (!(error instanceof AppError) || error.code !== 'invalid') return error;
    events.failed('request', { address, user, clientUid, reason: error.message });
    return new CoreFault('internal', error.message, { cause: error });
  }

  function requestedKey(username: string, { request, clientUid, address }: EnrollmentOrder): Uint8Array<ArrayBuffer> {
    try {
      return publicKeyFor(username, request);
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      events.failed('request', { address, user: username, clientUid, reason: error.message });
      throw new CoreFault('internal', error.message, { cause: error });
    }
  }
}
