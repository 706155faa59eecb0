// Formats the answers of enrollment byte for byte as clients expect them.

import { escapeHtml } from '@holdfast/kit/text';
import type { SignedCertificate } from '@holdfast/pki/parts';
import { SUBJECT_ENTRIES } from '@holdfast/pki/subject';
import { json } from '../http/answers.ts';

/** Certificates without keys as PKCS#12; each is DER. */
export type CertificateBundle = (
  entries: readonly { friendlyName: string; certificate: Uint8Array<ArrayBuffer> }[],
  password: string,
) => Promise<Uint8Array<ArrayBuffer>>;

const DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';
const BUNDLE_PASSWORD = 'atakatak';
const LINE = /.{1,64}/g;

/**
 * What clients make the subject of their request from. One library looks for the prefix `ns2`
 * literally.
 */
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

/**
 * Base64 in lines of 64 characters. The last one has no end: clients add it with the line after it,
 * and OpenSSL takes no empty line.
 */
function lines(der: Uint8Array): string {
  return (Buffer.from(der).toString('base64').match(LINE) ?? []).join('\n');
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64'));
}

export type Representation = 'json' | 'xml';

/**
 * What each range stands for, the usual one first. `text/plain` is what some clients ask for that
 * read JSON.
 */
const RANGES: ReadonlyMap<string, readonly Representation[]> = new Map([
  ['application/json', ['json']],
  ['application/xml', ['xml']],
  ['text/plain', ['json']],
  ['text/*', ['json']],
  ['application/*', ['json', 'xml']],
  ['*/*', ['json', 'xml']],
  ['*', ['json', 'xml']],
]);

/**
 * What a client wants its certificate written in, by the header Accept (RFC 9110, 12.5.1), read as
 * leniently as old clients need: `*; q=.2` stands for everything. Wanted most comes first;
 * undefined when nothing is wanted that can be given.
 */
export function wantedRepresentation(accept: string | undefined): Representation | undefined {
  if (accept === undefined || accept.trim() === '') return 'json';
  const ranges = accept.split(',').map(readRange);
  const refused = new Set(ranges.filter(({ weight }) => weight === 0).map(({ type }) => type));
  const [best] = ranges
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight || precision(b.type) - precision(a.type))
    .flatMap(({ type }) => RANGES.get(type) ?? [])
    .filter((representation) => !refused.has(`application/${representation}`));
  return best;
}

function readRange(text: string): { type: string; weight: number } {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=\s*/, '');
  return { type, weight: weight === undefined ? 1 : readWeight(weight) };
}

/** What is no weight counts as none given. */
function readWeight(text: string): number {
  return /^(?:[01](?:\.\d*)?|\.\d+)$/.test(text) ? Math.min(1, Number(text)) : 1;
}

function precision(type: string): number {
  return type.includes('*') ? 0 : 1;
}
