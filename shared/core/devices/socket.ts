// Opens a TLS connection to the core with a client certificate: always a new handshake, with the CA
// pinned and the host name checked. Errors distinguish a refused certificate from failures that
// prove nothing about it.

import { connect as connectRaw, isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import type { KeptKey } from './port.ts';

export interface DevicePlace {
  /** Displayed to people: `tls://cot.example.org:8089`. */
  name: string;
  host: string;
  port: number;
}

/** The core does not accept this certificate; the message is a sentence without a period. */
export class Refused extends Error {}

const HANDSHAKE_WITHIN_MS = 5_000;
const LISTENS_WITHIN_MS = 2_000;

/**
 * Resolves after the handshake, which under TLS 1.3 does not prove that the certificate was
 * accepted. Rejects with Refused when the core closes the connection after presenting its own
 * certificate; else with an AppError.
 */
export async function openDeviceSocket(place: DevicePlace, caPem: string, key: KeptKey): Promise<TLSSocket> {
  const socket = open(place, caPem, key);
  const timer = setTimeout(
    () =>
      socket.destroy(
        new AppError('unavailable', `The core at ${place.name} did not finish the TLS handshake within 5 s.`),
      ),
    HANDSHAKE_WITHIN_MS,
  );
  let hasShownItself = false;
  // Fires within the handshake, once the server's certificate is there, with or without a stapled
  // response.
  socket.once('OCSPResponse', () => (hasShownItself = true));
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('closed')));
    });
  } catch (error) {
    socket.destroy();
    if (error instanceof AppError) throw error;
    throw hasShownItself && !isOfServer(error) ? await whyEnded(place, error) : failure(place, error);
  } finally {
    clearTimeout(timer);
  }
  // Later errors belong to the caller; an error without a listener would end the process.
  socket.on('error', () => undefined);
  return socket;
}

function open({ host, port }: DevicePlace, caPem: string, key: KeptKey): TLSSocket {
  const servername = isIP(host) === 0 ? host : '';
  const cert = [key.certificatePem, ...key.chainPem].join('\n');
  // An own authority may be an intermediate one: being in the file is enough.
  const trust = { ca: caPem, allowPartialTrustChain: true, minVersion: 'TLSv1.2' as const };
  try {
    return connect({ host, port, servername, cert, key: key.keyPem, requestOCSP: true, ...trust });
  } catch (error) {
    throw new AppError('upstream', `The stored key cannot be used (${codeOf(error) ?? 'it cannot be read'}).`, {
      cause: error,
    });
  }
}

/**
 * Why a connection closed after the core presented its certificate: a refusal, unless the port no
 * longer listens (a core that died proves nothing about the certificate).
 */
export async function whyEnded(place: DevicePlace, error: unknown): Promise<Error> {
  if (error instanceof AppError) return error;
  const alert = /ALERT_(.*)$/.exec(codeOf(error) ?? '')?.[1];
  if (alert !== undefined) return new Refused(`the core refused it (${alert.toLowerCase().replaceAll('_', ' ')})`);
  if (await listens(place)) return new Refused('the core ended the connection');
  return new AppError('unavailable', `The core at ${place.name} closed the connection and no longer listens.`);
}

async function listens({ host, port }: DevicePlace): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectRaw({ host, port, timeout: LISTENS_WITHIN_MS });
    socket.once('connect', () => resolve(true));
    for (const event of ['error', 'timeout']) socket.once(event, () => resolve(false));
    for (const event of ['connect', 'timeout']) socket.once(event, () => socket.destroy());
  });
}

/** Found by us, not by the core: its certificate is invalid. */
function isOfServer(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' || VERIFICATION.test(code);
}

/** Node's names of OpenSSL's verification errors. */
const VERIFICATION = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|CRL_|ERROR_IN_CERT|INVALID_|PATH_LENGTH|HOSTNAME_)/;
const UNTRUSTED = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_SIGNATURE_FAILURE)/;

function failure({ name, host, port }: DevicePlace, error: unknown): AppError {
  const code = codeOf(error) ?? '';
  const because = (says: string, of: 'unavailable' | 'upstream' = 'unavailable'): AppError =>
    new AppError(of, `The core at ${name} ${says}`, { cause: error });
  if (code === 'ECONNREFUSED') return because('refuses connections. Remedy: check that it runs.');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return because(`has a host name without an address: ${host}.`);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return because(`presents a certificate that is not issued to ${host}.`, 'upstream');
  if (UNTRUSTED.test(code))
    return because(
      `presents a certificate that is not from our CA (${code}). Remedy: check that CORE_DATA_DIR is the core's own, with its certs/files/ca.pem.`,
      'upstream',
    );
  if (VERIFICATION.test(code)) return because(`presents an invalid certificate (${code}).`, 'upstream');
  if (code.startsWith('ERR_SSL_')) return because(`does not speak TLS on port ${port} (${code}).`, 'upstream');
  return because(
    `closed the connection before it presented its certificate (${code === '' ? messageOf(error) : code}).`,
  );
}
