// Gives the proxy the core's CA and, in direct mode, the server certificate and key. Each pair gets
// new file names, which `tls.caddy` includes. The proxy watches that file, so the core must not
// write it.

import { createHash, X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readServerIdentity } from '@holdfast/core/tls/server-identity';
import { writeUnlessThere } from '@holdfast/kit/files';
import { DAY_MS } from '@holdfast/kit/time';
import { repeatRegularly } from '@holdfast/kit/retry';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import type { ServerCertificateFiles } from '@holdfast/pki/server-certificate';

/** Mount point of the directory in the proxy. */
const AT_PROXY = '/certificate';
/** Long after the proxy has loaded the new pair. */
const KEPT_MS = DAY_MS;
const PAIR_FILE = /^server-.+\.(?:pem|key)(?:\.new)?$/;

export interface ForProxy {
  /** CORE_DATA_DIR. */
  core: string;
  directory: string;
  /** In direct mode the proxy uses the stack's certificate. Otherwise it needs no key. */
  withKey: boolean;
}

/** Keeps the proxy supplied while the process runs. */
export function supplyProxy(proxy: ForProxy, failed: (message: string) => void): void {
  const { ca, server: certificate, serverKey: key } = certificateFiles(proxy.core);
  repeatRegularly(() => giveToProxy(proxy, { ca, certificate, key }, new Date()), failed);
}

/**
 * Writes missing files, and removes pairs unused for a day. Throws if certificate and key don't
 * match.
 */
export function giveToProxy(
  { directory, withKey }: Pick<ForProxy, 'directory' | 'withKey'>,
  files: ServerCertificateFiles,
  now: Date,
): void {
  const { certificate, key } = readServerIdentity(files);
  const name = nameOf(directory, certificate);
  writeUnlessThere(join(directory, 'ca.pem'), readFileSync(files.ca, 'utf8'), 0o644);
  if (withKey) writeUnlessThere(join(directory, `${name}.key`), key, 0o600);
  writeUnlessThere(join(directory, `${name}.pem`), certificate, 0o644);
  const line = `tls ${AT_PROXY}/${name}.pem ${AT_PROXY}/${name}.key\n`;
  writeUnlessThere(join(directory, 'tls.caddy'), line, 0o644);
  removeOld(directory, withKey ? [`${name}.pem`, `${name}.key`] : [`${name}.pem`], now);
}

/**
 * Name by serial number. The same certificate with another chain gets another name, so that the
 * proxy reloads it.
 */
function nameOf(directory: string, certificate: string): string {
  const name = `server-${new X509Certificate(certificate).serialNumber.toLowerCase()}`;
  const known = textOf(join(directory, `${name}.pem`));
  if (known === undefined || known === certificate) return name;
  return `${name}-${createHash('sha256').update(certificate).digest('hex').slice(0, 8)}`;
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

function removeOld(directory: string, inUse: readonly string[], now: Date): void {
  for (const file of readdirSync(directory)) {
    if (!PAIR_FILE.test(file) || inUse.includes(file)) continue;
    const path = join(directory, file);
    if (now.getTime() - statSync(path).mtimeMs > KEPT_MS) rmSync(path);
  }
}
