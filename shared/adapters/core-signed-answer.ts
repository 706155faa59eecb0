// What the core has signed, held against what was asked for: the key is ours, the name is the user's, the issuer is the CA that
// we trust.

import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { nameKey } from '../domain/names.ts';

/** Base64 without header lines; some cores send them. */
const certificate = z.string().transform((text, issues) => {
  try {
    return new X509Certificate(Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64'));
  } catch {
    issues.addIssue({ code: 'custom', message: 'cannot be read as a certificate' });
    return z.NEVER;
  }
});

const CA_MEMBER = /^ca(\d{1,3})$/;

/** `signedCert`, `ca0`, `ca1`, ..., of which two may be the same. */
export const signedAnswer = z.looseObject({ signedCert: certificate }).transform((read, issues) => {
  const above: X509Certificate[] = [];
  for (const [name, value] of Object.entries(read)) {
    if (!CA_MEMBER.test(name)) continue;
    const found = certificate.safeParse(value);
    if (found.success) above.push(found.data);
    else issues.addIssue({ code: 'custom', path: [name], message: 'cannot be read as a certificate' });
  }
  return { signed: read.signedCert, above };
});

export interface Expected {
  username: string;
  /** SubjectPublicKeyInfo, DER. */
  publicKey: Buffer;
  authorities: readonly X509Certificate[];
}

/** What is wrong with the certificate, as a predicate of it; undefined when nothing is. */
export function faultOf(signed: X509Certificate, { username, publicKey, authorities }: Expected): string | undefined {
  if (!signed.publicKey.export({ type: 'spki', format: 'der' }).equals(publicKey)) return 'has another key than ours';
  const names = [signed.toLegacyObject().subject.CN].flat();
  if (names.length !== 1 || nameKey(names[0] ?? '') !== nameKey(username)) return `is not made out to ${username}`;
  if (!authorities.some((each) => isIssuedBy(signed, each))) return 'is not signed by the CA of ca.pem';
  return undefined;
}

/** The issuer, its issuer and so on, as far as they are among these; each once, in whatever order they came. */
export function chainOf(signed: X509Certificate, among: readonly X509Certificate[]): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const next = (of: X509Certificate): X509Certificate | undefined =>
    among.find((each) => isIssuedBy(of, each) && !isSame(of, each) && !chain.some((other) => isSame(other, each)));
  for (let issuer = next(signed); issuer !== undefined; issuer = next(issuer)) chain.push(issuer);
  return chain;
}

const isSame = (a: X509Certificate, b: X509Certificate): boolean => a.fingerprint256 === b.fingerprint256;

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}
