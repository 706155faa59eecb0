// What the core reads in a certificate that a client shows, or that stands in its table.

import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { CHANNELS_USAGE } from '@holdfast/pki/authority';
import { normalSerial } from '@holdfast/pki/keys';
import { readSubject } from '@holdfast/pki/subject';
import type { ClientCertificate } from '../model/parts.ts';

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
