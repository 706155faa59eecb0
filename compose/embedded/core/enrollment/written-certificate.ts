// The answers of enrollment, byte for byte as clients read them.

import { escapeHtml } from '../../../../shared/domain/plain-text.ts';
import { json } from '../http/answers.ts';
import type { SignedCertificate } from '../parts.ts';
import { SUBJECT_ENTRIES } from '../pki/subject.ts';
import type { Representation } from './accept.ts';

/** Certificates without keys as PKCS#12; each is DER. */
export type CertificateBundle = (
  entries: readonly { friendlyName: string; certificate: Uint8Array<ArrayBuffer> }[],
  password: string,
) => Promise<Uint8Array<ArrayBuffer>>;

const DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';
const BUNDLE_PASSWORD = 'atakatak';
const LINE = /.{1,64}/g;

/** What clients make the subject of their request from. One library looks for the prefix `ns2` literally. */
export function certificateConfig(): Response {
  const entries = SUBJECT_ENTRIES.map(
    ({ name, value }) => `<nameEntry name="${escapeHtml(name)}" value="${escapeHtml(value)}"/>`,
  );
  return xml(
    '<ns2:certificateConfig xmlns="http://bbn.com/marti/xml/config" xmlns:ns2="com.bbn.marti.config">' +
      `<nameEntries>${entries.join('')}</nameEntries></ns2:certificateConfig>`,
  );
}

/** `chain` is PEM, the issuer first. */
export function writtenCertificate(
  representation: Representation,
  signed: SignedCertificate,
  chain: readonly string[],
): Response {
  const own = lines(signed.der);
  const above = chain.map((pem) => lines(derOf(pem)));
  if (representation === 'json')
    return unstored(json({ signedCert: own, ...Object.fromEntries(above.map((text, index) => [`ca${index}`, text])) }));
  const cas = above.map((text) => `<ca>${text}</ca>`);
  return unstored(xml(`<enrollment><signedCert>${own}</signedCert>${cas.join('')}</enrollment>`));
}

/** The same as PKCS#12, the certificate as `signedCert`, those above it as `ca0`, `ca1`, ... */
export async function bundledCertificate(
  bundle: CertificateBundle,
  signed: SignedCertificate,
  chain: readonly string[],
): Promise<Response> {
  const entries = [
    { friendlyName: 'signedCert', certificate: signed.der },
    ...chain.map((pem, index) => ({ friendlyName: `ca${index}`, certificate: derOf(pem) })),
  ];
  const file = await bundle(entries, BUNDLE_PASSWORD);
  return unstored(new Response(file, { headers: { 'content-type': 'application/octet-stream' } }));
}

function xml(element: string): Response {
  return new Response(DECLARATION + element, { headers: { 'content-type': 'application/xml' } });
}

function unstored(answer: Response): Response {
  answer.headers.set('cache-control', 'no-store');
  return answer;
}

/** Base64 in lines of 64 characters. The last one has no end: clients add it with the line after it, and OpenSSL takes no empty line. */
function lines(der: Uint8Array): string {
  return (Buffer.from(der).toString('base64').match(LINE) ?? []).join('\n');
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64'));
}
