// Hands out a certificate with its key: as PKCS#12, as a data package, or as PEM. Never one that is
// revoked or being revoked; each download and each refusal is in the audit log.

import { AppError, invalid, messageOf } from '@holdfast/kit/app-error';
import { bytesOfBase64 } from '@holdfast/kit/text';
import { audited } from '../../audit/audited.ts';
import type { Audit } from '../../audit/port.ts';
import type { ClientKeys, KeptKey } from '../../core/devices/port.ts';
import type { CoreAuthority } from '../../core/port.ts';
import { mustBeAllowed, type PeopleContext, type PeopleDeps } from '../accounts.ts';
import { apiPortOf, streamingPortOf } from '../links.ts';
import type { Bundles } from '../port.ts';
import { isOwnCertificate } from '../rules.ts';
import { dataPackage, safeFileName } from './data-package.ts';
import { findCertificate, type FindCertificateDeps, findCertificateOf, type FoundCertificate } from './find.ts';

export type DownloadDeps = PeopleDeps &
  FindCertificateDeps & {
    audit: Pick<Audit, 'intend' | 'conclude' | 'note'>;
    clientKeys: Pick<ClientKeys, 'kept' | 'read'>;
    coreAuthority: CoreAuthority;
    bundles: Bundles;
    /** Its name is where phones find the core. */
    place: { name: string };
    settings: { CORE_API_URL?: string | undefined; CORE_STREAMING_URL?: string | undefined };
  };

export interface DownloadContext extends PeopleContext {
  deps: DownloadDeps;
}

export interface WantedDownload {
  file: string;
  /** Only if it is that user's; else it is not there. */
  of?: string;
  format: 'p12' | 'data-package' | 'pem';
  /** For a data package. */
  app?: 'atak' | 'itak' | undefined;
  /** PKCS#12 that old phones read. */
  legacy: boolean;
}

export interface Download {
  fileName: string;
  contentType: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** `not_found`, `forbidden` for a revoked one, `conflict` where there is no key. */
export async function downloadCertificate(context: DownloadContext, wanted: WantedDownload): Promise<Download> {
  const { deps, actor } = context;
  mustFitTogether(wanted);
  const { file, of } = wanted;
  const found = await (of === undefined ? findCertificate(deps, file) : findCertificateOf(deps, file, of));
  const { shown } = found;
  const subject = { actor, action: 'certificate.download', target: shown.username };
  const list = await judged(context, found).catch(async (error: unknown) => {
    if (error instanceof AppError && error.code === 'forbidden')
      await deps.audit.note(subject, 'denied', { file: shown.file, reason: error.message });
    throw error;
  });
  mustHaveKey(found);
  const { format, app, legacy } = wanted;
  const detail = { file: shown.file, fingerprint: shown.fingerprint, format, ...(app ? { app } : {}), legacy, ...list };
  return audited(deps, { ...subject, detail }, async () => {
    const key = await deps.clientKeys.read(shown.fingerprint);
    if (key === undefined) throw withoutKey(shown.file);
    return handedOut(deps, found, key, wanted);
  });
}

function mustFitTogether({ format, app, legacy }: WantedDownload): void {
  if (app !== undefined && format !== 'data-package') throw invalid('app', 'is only for format=data-package');
  if (legacy && format === 'pem') throw invalid('compat', 'is only for PKCS#12, not for format=pem');
}

/** What the revocation list has said, for the audit log; throws `forbidden`. */
async function judged(context: DownloadContext, { shown }: FoundCertificate): Promise<{ revocation_list: string }> {
  await mustMayTake(context, shown.username);
  if (shown.state === 'revoking' || shown.state === 'revoked' || shown.state === 'revocation_failed')
    throw revoked(shown.file);
  const list = await context.deps.coreAuthority.revocationList().catch(allowWhenCrlUnreadable);
  if ('unreadable' in list) return { revocation_list: `allowed unchecked: ${list.unreadable}` };
  if (!list.ours) return { revocation_list: 'allowed unchecked: the list is not signed by the CA of the core' };
  if (list.serials.includes(shown.serial)) throw revoked(shown.file);
  return { revocation_list: 'not on it' };
}

/**
 * The rule of the specification: whoever needs a certificate gets it, whatever has become of a
 * file.
 */
function allowWhenCrlUnreadable(error: unknown): { unreadable: string } {
  return { unreadable: messageOf(error) };
}

function revoked(file: string): AppError {
  return new AppError('forbidden', `${file} is revoked or being revoked, so it can no longer be downloaded.`);
}

/** A token that may not do everything must not get the key of somebody who may. */
async function mustMayTake(context: DownloadContext, username: string): Promise<void> {
  const { principal, deps } = context;
  if (principal?.by.kind !== 'token' || principal.by.scope === 'admin') return;
  const { scope } = principal.by;
  const owner = scope === 'users' ? await deps.identity.accounts.named(username) : undefined;
  if (owner?.kind !== 'person')
    throw new AppError(
      'forbidden',
      `This token has the scope ${scope}: it cannot download this key. Use a token of the scope admin.`,
    );
  mustBeAllowed(context, owner);
}

function mustHaveKey({ certificate, shown }: FoundCertificate): void {
  const { file, name, state, downloadable, expires_at: end } = shown;
  if (isOwnCertificate(certificate))
    throw new AppError(
      'conflict',
      `Holdfast itself uses the certificate ${file} for the core, so it can't be downloaded here. Its file is ${file} in certs/files below CORE_DATA_DIR. For your own program, create a service account (POST /api/service-accounts).`,
    );
  if (state === 'expired') throw new AppError('conflict', `${file} expired at ${end}. Issue another certificate.`);
  if (downloadable) return;
  if (name !== null) throw withoutKey(file);
  throw new AppError(
    'conflict',
    `${file} was not made here: only the enrolled device has its key. Issue another certificate with POST /api/ops/certs.`,
  );
}

function withoutKey(file: string): AppError {
  return new AppError(
    'conflict',
    `The key of ${file} is not stored, so it can no longer be downloaded. Revoke it and issue another certificate of that name. KEEP_CLIENT_KEYS decides whether keys are kept.`,
  );
}

async function handedOut(
  deps: DownloadDeps,
  { shown, certificate }: FoundCertificate,
  key: KeptKey,
  { format, app = 'atak', legacy }: WantedDownload,
): Promise<Download> {
  const fileName = shown.file;
  const stem = fileName.replace(/\.p12$/, '');
  if (format === 'pem') {
    const text = [key.keyPem, key.certificatePem, ...key.chainPem].map((pem) => `${pem.trim()}\n`).join('');
    return { fileName: `${stem}.pem`, contentType: 'application/x-pem-file', bytes: new TextEncoder().encode(text) };
  }
  const bytes = bytesOfBase64(await deps.bundles.withKey(key, { friendlyName: certificate.username, legacy }));
  if (format === 'p12') return { fileName, contentType: 'application/x-pkcs12', bytes };
  const { chainPem } = await deps.coreAuthority.certificate();
  const packed = dataPackage({
    app,
    uid: crypto.randomUUID(),
    description: deps.place.name,
    host: deps.place.name,
    streamingPort: streamingPortOf(deps.settings.CORE_STREAMING_URL),
    apiPort: apiPortOf(deps.settings.CORE_API_URL),
    trust: { fileName: 'truststore.p12', bytes: bytesOfBase64(await deps.bundles.trust(chainPem)) },
    client: { fileName: safeFileName(fileName), bytes },
  });
  return { fileName: `${stem}-${app}.zip`, contentType: 'application/zip', bytes: packed };
}
