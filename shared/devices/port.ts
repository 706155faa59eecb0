// Defines Holdfast's own records of certificates: names, revocations with the state of their proof,
// and canary results. Times are ISO 8601.

import type { Log } from '@holdfast/kit/log';
import type { Audit } from '../audit/port.ts';
import type { ClientKeys, CoreDevices, KeptKey } from '../core/devices/port.ts';
import type { Core, CoreAuthority } from '../core/port.ts';
import type { Exclusive } from '../identity/port.ts';
import type { HealthMemory } from '../jobs/port.ts';

/** A certificate that Holdfast made. */
export interface MadeCertificate {
  hash: string;
  username: string;
  /** Of the certificate; empty for the only one of a service account. */
  name: string;
  serial: string;
  clientUid: string;
  issuedAt: string;
  expiresAt: string;
}

/**
 * `revocation_failed`: something was seen that a revoked certificate must not do. It is tried on.
 */
export type RevocationState = 'revoking' | 'revoked' | 'revocation_failed';

export interface Revocation extends Omit<MadeCertificate, 'name'> {
  wantedAt: string;
  state: RevocationState;
  /** When it was last looked at. */
  checkedAt: string | null;
  provenAt: string | null;
  /** What is missing for the proof, in a sentence. */
  problem: string | null;
  /** Whether its connections could be seen to be gone; a core names no certificate per stream. */
  streams: 'none' | 'unverifiable' | null;
}

/**
 * Everything that somebody has at this time is to be revoked; kept until each certificate stands as
 * a Revocation.
 */
export interface RevocationOrder {
  username: string;
  wantedAt: string;
}

export interface CanaryRun {
  at: string;
  ok: boolean;
  /**
   * False: the core answered, but did not sign its certificate, so nobody can enroll. It says
   * nothing about revocation then.
   */
  signed: boolean;
  /** Why it failed, in a sentence. */
  problem: string | null;
  /** When the core that it was tried on began; null when it does not say. */
  coreStartedAt: string | null;
}

export interface SettledRevocation {
  state: RevocationState;
  checkedAt: string;
  problem: string | null;
  streams: Revocation['streams'];
}

/**
 * Names of users are compared without regard to case. Every call rejects with `unavailable` when
 * our database is away.
 */
export interface CertificateStore {
  remember(made: MadeCertificate): Promise<void>;
  /** Of these users, or of everybody. */
  made(usernames?: readonly string[]): Promise<MadeCertificate[]>;
  /** Notes as `revoking` those that are not noted yet. */
  wantRevoked(certificates: readonly Omit<MadeCertificate, 'name'>[], wantedAt: string): Promise<void>;
  /** Of these users, or of everybody. */
  revocations(usernames?: readonly string[]): Promise<Revocation[]>;
  /** Those that are not proven, oldest first. */
  openRevocations(limit: number): Promise<Revocation[]>;
  openRevocationCount(): Promise<number>;
  /** Which of these are noted, whatever has become of them; in no order. */
  noted(hashes: readonly string[]): Promise<string[]>;
  /** The hashes of what was proven at that time or later; in no order. */
  provenSince(since: string): Promise<string[]>;
  /** `revoked` is final. */
  settle(hash: string, settled: SettledRevocation): Promise<void>;
  order(order: RevocationOrder): Promise<void>;
  orders(): Promise<RevocationOrder[]>;
  /** Unless it was given anew meanwhile. */
  closeOrder(order: RevocationOrder): Promise<void>;
  lastCanary(): Promise<CanaryRun | undefined>;
  /** Only the last hundred are kept. */
  recordCanary(run: CanaryRun): Promise<void>;
  /** True when there is an order, or a revocation without proof. */
  hasOpenWork(): Promise<boolean>;
}

/**
 * Which app passwords were made for enrollment, and for which CA. The identity provider alone keeps
 * the passwords.
 */
export interface EnrollmentToken {
  /** Of the app password. */
  identifier: string;
  accountId: number;
  username: string;
  /** SHA-256 of the CA certificate's DER when it was made: `AA:BB:…`. */
  caFingerprint: string;
  /** ISO 8601. */
  createdAt: string;
  expiresAt: string;
}

/** Every call rejects with `unavailable` when our database is away. */
export interface EnrollmentTokens {
  add(token: EnrollmentToken): Promise<void>;
  /** Newest first; expired ones too. */
  of(accountId: number): Promise<EnrollmentToken[]>;
  remove(identifier: string): Promise<void>;
}

/**
 * The right to use the core's admin API: it sits on a certificate. It is asked for in a spool
 * directory that only management and the core's side see; a loop there checks the name and gives or
 * takes the right.
 */
export interface AdminGrants {
  /**
   * Asks for the right for this certificate of a `svc_` account. Resolves when it is asked for, not
   * when it is given.
   */
  give(username: string, certificatePem: string): Promise<void>;
  /** Asks to take the right away from that account. */
  take(username: string): Promise<void>;
}

/** PKCS#12 files, as Base64. The password is the one that everybody knows: it protects nothing. */
export interface Bundles {
  /** A key with its certificate and chain: AES-256-CBC; `legacy`: 3DES and SHA-1, for old ATAK. */
  withKey(key: KeptKey, options: { friendlyName: string; legacy?: boolean }): Promise<string>;
  /** CA certificates that are trusted (PEM), as old phones read them. */
  trust(chainPem: readonly string[]): Promise<string>;
}

/** What everything needs that has to do with revoking. */
export interface RevocationDeps {
  core: Pick<Core, 'certificates' | 'certificate' | 'revoke' | 'clients' | 'disconnect' | 'status'>;
  coreDevices: Pick<CoreDevices, 'connect' | 'roles' | 'close'>;
  coreAuthority: Pick<CoreAuthority, 'revocationList'>;
  clientKeys: Pick<ClientKeys, 'kept' | 'remove'>;
  certificateStore: CertificateStore;
  coreLock: Exclusive;
  audit: Pick<Audit, 'intend' | 'conclude'>;
  health: HealthMemory;
  log: Log;
  now: () => Date;
}

/** How a revocation stands after a look at it. */
export type Judgement = Pick<Revocation, 'state' | 'problem' | 'streams'>;

/** What this feature asks of the outside, by the names in Deps. */
export interface DevicePorts {
  adminGrants: AdminGrants;
  bundles: Bundles;
  certificateStore: CertificateStore;
  enrollmentTokens: EnrollmentTokens;
}
