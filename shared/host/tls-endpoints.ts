// Inspects the certificates of TLS endpoints with Node's own TLS client; nothing is sent but the
// handshake.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { checkServerIdentity, connect, getCACertificates, type TLSSocket } from 'node:tls';
import { codeOf, messageOf } from '@holdfast/kit/app-error';
import type { TlsEndpoint, TlsEndpoints, TlsState } from './port.ts';

/**
 * The certificate that a server presented (DER) with the error code of OpenSSL's refusal, or why
 * there was none.
 */
type Sight = { raw: Buffer; refusal: string | undefined } | { failure: string };
/** The stack's own authorities, or why they can't be read. */
type Own = { pem?: string; problem?: string };

const UNKNOWN_AUTHORITY = /^(UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIG)|SELF_SIGNED_CERT_IN_CHAIN)/;
const NOT_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/;

/**
 * Inspects TLS endpoints as a client on this machine. The own CA is read again each time; without
 * one, `own` means `public`. Each error is a predicate whose subject is the endpoint: "expired on
 * 2026-01-02", "refuses connections on port 443".
 */
export function tlsEndpoints(options: { ownCaFile: string | undefined; withinMs?: number }): TlsEndpoints {
  const { ownCaFile, withinMs = 5000 } = options;

  async function inspectOne(endpoint: TlsEndpoint): Promise<TlsState> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), withinMs);
    try {
      const own = endpoint.trust === 'own' && ownCaFile !== undefined ? await readOwn(ownCaFile, limit.signal) : {};
      const sight = await lookAt(endpoint, own, limit.signal, `within ${withinMs / 1000} s`);
      return 'failure' in sight ? unreachable(sight.failure) : judge(endpoint.host, sight, own);
    } catch (error) {
      return unreachable(`can't be inspected: ${messageOf(error)}`);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async inspect({ others = [], ...endpoint }) {
      const [first, ...rest] = await Promise.all([
        inspectOne(endpoint),
        ...others.map((other) => inspectOne({ ...endpoint, ...other })),
      ]);
      return first.reachable ? first : (rest.find(({ reachable }) => reachable) ?? first);
    },
  };
}

async function readOwn(file: string, limit: AbortSignal): Promise<Own> {
  try {
    const late = once(limit, 'abort').then(() => Promise.reject(new Error('its file system does not answer')));
    const pem = await Promise.race([readFile(file, 'utf8'), late]);
    return new X509Certificate(pem).ca ? { pem } : { problem: `the CA file ${file} contains no CA certificate` };
  } catch (error) {
    return { problem: `the CA file ${file} can't be read (${codeOf(error) ?? messageOf(error)})` };
  }
}

function lookAt(endpoint: TlsEndpoint, own: Own, limit: AbortSignal, within: string): Promise<Sight> {
  if (limit.aborted) throw new Error(own.problem);
  return new Promise((resolve) => {
    const socket = open(endpoint, own.pem);
    let sight: Sight | undefined;
    let finished = false;
    let failure = `does not answer on port ${endpoint.port} ${within}`;
    const look = (refusal: string | undefined): void => {
      // Not getPeerX509Certificate: it takes the certificate out of the connection, and Node's own
      // check finds none.
      sight = { raw: socket.getPeerCertificate().raw, refusal };
    };
    socket.on('connect', () => (failure = `accepts connections on port ${endpoint.port} but sends nothing ${within}`));
    // Fires within the handshake, after verification, with or without a stapled response. A TLS 1.2
    // server that demands a client certificate aborts the handshake right after it.
    socket.on('OCSPResponse', () => look(refusalSoFar(socket)));
    socket.on('secureConnect', () => {
      finished = true;
      look(socket.authorized ? undefined : String(socket.authorizationError));
      socket.destroySoon();
    });
    socket.on('error', (error) => {
      failure = describeFailure(endpoint, error);
      if (!finished && !isRefusal(error)) sight = undefined;
    });
    socket.on('close', () => resolve(sight ?? { failure }));
    limit.addEventListener('abort', () => {
      if (!finished && sight !== undefined) {
        sight = undefined;
        failure = `does not finish the TLS handshake on port ${endpoint.port} ${within}`;
      }
      socket.destroy();
    });
  });
}

function open({ host, port, address = host }: TlsEndpoint, ownPem: string | undefined): TLSSocket {
  // An own authority may be an intermediate one, as TAK Server's scripts make it: being in the file
  // is enough.
  const own = { ca: [...getCACertificates('default'), ownPem ?? ''], allowPartialTrustChain: true };
  const servername = isIP(host) === 0 ? host : '';
  const options = { host: address, port, servername, rejectUnauthorized: false, requestOCSP: true };
  return connect(ownPem === undefined ? options : { ...options, ...own });
}

/** `authorizationError` is not set before the end of the handshake; Node reads it from here. */
function refusalSoFar(socket: TLSSocket): string | undefined {
  const { _handle: handle } = socket as unknown as { _handle: { verifyError(): Error | null | undefined } };
  const error = handle.verifyError() ?? undefined;
  return error && (codeOf(error) ?? error.message);
}

/** The ways in which a server demands a client certificate: an alert, or a closed connection. */
function isRefusal(error: Error): boolean {
  const code = codeOf(error) ?? '';
  return code === 'ECONNRESET' || code === 'EPIPE' || /ALERT/.test(code);
}

function describeFailure({ host, port }: TlsEndpoint, error: Error & { reason?: string }): string {
  const code = codeOf(error) ?? '';
  if (code === 'ECONNREFUSED') return `refuses connections on port ${port}`;
  if (code === 'ENOTFOUND') return `has an unknown host name: ${host}`;
  if (code === 'EAI_AGAIN') return `has a host name that can't be resolved right now: ${host}`;
  if (code === 'ECONNRESET') return `closes the connection on port ${port} without a TLS handshake`;
  if (NOT_TLS.test(code)) return `does not speak TLS on port ${port}`;
  if (code.startsWith('ERR_SSL_')) return `fails at the TLS handshake on port ${port}: ${error.reason ?? code}`;
  return `can't be reached on port ${port}: ${error.message === '' ? code : error.message}`;
}

function unreachable(error: string): TlsState {
  const nothing = { expires_at: undefined, subject: undefined, issuer: undefined, fingerprint: undefined };
  return { reachable: false, trusted: false, error, ...nothing };
}

function judge(host: string, { raw, refusal }: Exclude<Sight, { failure: string }>, own: Own): TlsState {
  const certificate = new X509Certificate(raw);
  const chain = describeRefusal(certificate, refusal);
  const problems = [chain, chain && own.problem, describeOtherHost(certificate, host)].filter(Boolean);
  return {
    reachable: true,
    trusted: problems.length === 0,
    error: problems.length === 0 ? undefined : problems.join('; '),
    expires_at: certificate.validToDate.toISOString(),
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    fingerprint: certificate.fingerprint256,
  };
}

function describeRefusal(certificate: X509Certificate, refusal: string | undefined): string | undefined {
  const { validFromDate, validToDate, issuer } = certificate;
  if (refusal === undefined || refusal === 'ERR_TLS_CERT_ALTNAME_INVALID') return undefined;
  if (refusal === 'DEPTH_ZERO_SELF_SIGNED_CERT') return 'is self-signed';
  if (refusal === 'CERT_HAS_EXPIRED' && validToDate.getTime() <= Date.now()) return `expired on ${day(validToDate)}`;
  if (refusal === 'CERT_HAS_EXPIRED') return `has an authority that expired: ${oneLine(issuer)} or one above it`;
  if (refusal === 'CERT_NOT_YET_VALID' && validFromDate.getTime() > Date.now())
    return `is not valid before ${day(validFromDate)}`;
  if (!UNKNOWN_AUTHORITY.test(refusal)) return `is not trusted: ${refusal}`;
  const unless = refusal === 'SELF_SIGNED_CERT_IN_CHAIN' ? '' : ', or does not send the intermediate certificates';
  return `is signed by an unknown authority (${oneLine(issuer)})${unless}`;
}

function describeOtherHost(certificate: X509Certificate, host: string): string | undefined {
  if (checkServerIdentity(host, certificate.toLegacyObject()) === undefined) return undefined;
  const names = certificate.subjectAltName?.split(', ').map((name) => name.replace(/^(DNS|IP Address):/, ''));
  const some = names && [...names.slice(0, 5), ...(names.length > 5 ? [`${names.length - 5} more`] : [])].join(', ');
  return `is issued to ${some ?? oneLine(certificate.subject) ?? 'no host'}, not to ${host}`;
}

function day(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/** Joins the parts of a distinguished name, which Node puts on separate lines. */
function oneLine(name: string | undefined): string | undefined {
  return name === undefined || name === '' ? undefined : name.split('\n').join(', ');
}
