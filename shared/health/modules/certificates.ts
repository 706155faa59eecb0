// Checks the expiry of the CA, server, service, device and user certificates, the revocation list,
// and that every revocation is proven.

import { counted } from '@holdfast/kit/format';
import { HOUR_MS } from '@holdfast/kit/time';
import type { CertificateFile, CertificateKind, RevocationListFile } from '../../core/port.ts';
import type { ModuleThresholds, Status } from '../../settings/status.ts';
import { type Finding, limitsOf } from '../evaluate.ts';
import { AFTER_FAILURE_SECONDS, healthModule } from '../module.ts';
import {
  certificateEnds,
  daysUntil,
  type IssuedCertificate,
  type IssuedCertificates,
  judgeIssued,
  readIssued,
} from './issued-certificates.ts';
import {
  judgeRevocations,
  readRevocations,
  type Revocations,
  type UnprovenRevocation,
} from './unproven-revocations.ts';

interface CertificateState {
  name: string;
  kind: CertificateKind;
  subject: string | null;
  expires_at: string | null;
  /** Whole days, rounded down; null if the file can't be read. */
  days_left: number | null;
  problem: string | null;
}

interface RevocationListState {
  next_update: string | null;
  /** Whole hours until its next update, rounded down. */
  hours_left: number | null;
  problem: string | null;
}

interface CertificatesData {
  /** Null without CORE_DATA_DIR. */
  directory: string | null;
  least_days_left: number | null;
  certificates: CertificateState[];
  revocation_list: RevocationListState | null;
  /** Usable certificates of users, devices and programs; null while the core is unavailable. */
  issued_count: number | null;
  issued: IssuedCertificate[];
  issued_problem: string | null;
  /** Requested revocations that are not proven yet. */
  unproven_count: number;
  unproven: UnprovenRevocation[];
  canary: Revocations['canary'];
  revocations_problem: string | null;
  measured_at: string;
}

/**
 * The core renews the list every day for a week: with less time left, renewal has failed for days.
 */
const LIST_WARNING_HOURS = 48;
const LIST = 'ca.crl, the revocation list,';

export const certificates = healthModule<CertificatesData>({
  name: 'certificates',

  withinMs: 25_000,

  remedy: [
    'An unproven revocation is retried every 5 seconds. See unproven in /api/health/certificates for its owner and the reason. Treat the device as connected until then (docs/devices.md). A core that does not sign is retried every minute; takserver-api.log names the reason.',
    'Enroll devices again whose certificate expires: POST /api/users/{id}/enrollment. Check a file in certs/files below CORE_DATA_DIR: openssl x509 -in FILE -noout -subject -dates, for the list openssl crl -in FILE -noout -nextupdate.',
    'In the embedded stack, a restart renews the list, and server or service certificates with 30 days left or less. If it does not, read core.log in DIR/logs. With a TAK Server release, use the scripts in its certs directory and restart the core.',
    'If the CA expires soon, see docs/certificates.md. Never create a new CA because ca.pem is damaged, or every device must enroll again. Restore it from a backup. In the embedded stack you can also stop, remove ca.pem and start: this restores it while its key is there.',
  ],

  async read({ coreFiles, core, certificateStore, now }) {
    const at = now();
    const [files, issued, revocations] = await Promise.all([
      coreFiles?.certificates(),
      readIssued(core, certificateStore, at),
      readRevocations(certificateStore),
    ]);
    const seen = (files?.certificates ?? []).map((file) => certificateState(file, at));
    const days = [...seen, ...issued.certificates].flatMap(({ days_left }) => (days_left === null ? [] : [days_left]));
    return {
      directory: files?.directory ?? null,
      least_days_left: days.length === 0 ? null : Math.min(...days),
      certificates: seen,
      revocation_list: files === undefined ? null : listState(files.revocationList, at),
      issued_count: issued.count,
      issued: issued.certificates,
      issued_problem: issued.problem,
      unproven_count: revocations.unprovenCount,
      unproven: revocations.unproven,
      canary: revocations.canary,
      revocations_problem: revocations.problem,
      measured_at: at.toISOString(),
    };
  },

  findings(data, thresholds) {
    const issued: IssuedCertificates = {
      count: data.issued_count,
      certificates: data.issued,
      problem: data.issued_problem,
    };
    const revocations = {
      unproven: data.unproven,
      canary: data.canary,
      problem: data.revocations_problem,
    };
    // Revocations first: one that does not hold gives access to someone who should have none.
    return [
      ...judgeRevocations(revocations, { now: new Date(data.measured_at), coreAnswers: data.issued_problem === null }),
      ...judgeFiles(data, thresholds),
      ...judgeIssued(issued, thresholds),
    ];
  },

  well: ({ certificates: seen, issued_count, least_days_left, revocation_list }) =>
    `${counted(seen.length + (issued_count ?? 0), 'certificate')}. The first expires in ${counted(least_days_left ?? 0, 'day')}. The revocation list is valid for ${counted(Math.floor((revocation_list?.hours_left ?? 0) / 24), 'more day')}.`,

  againSeconds: ({ issued_problem, revocations_problem }) =>
    issued_problem === null && revocations_problem === null ? undefined : AFTER_FAILURE_SECONDS,

  trend: {
    name: 'until the first expires',
    unit: 'days',
    limits: limitsOf,
    figureOf: ({ least_days_left }) => least_days_left,
  },
});

function judgeFiles(
  { directory, certificates: seen, revocation_list: list }: CertificatesData,
  thresholds: ModuleThresholds,
): Finding[] {
  if (directory === null || list === null)
    return [fact('warning', 'CORE_DATA_DIR is not set, so the certificates of the core are not checked')];
  if (seen.every(({ problem }) => problem === 'is missing'))
    return [
      fact(
        'critical',
        `no certificates in ${directory}: the core was never started with it, or its volume is not mounted`,
      ),
    ];
  return [...seen.map((each) => judgeCertificate(each, thresholds)), ...judgeList(list)];
}

function fact(status: Status, says: string): Finding {
  return { kind: 'fact', status, says };
}

function certificateState(file: CertificateFile, now: Date): CertificateState {
  const { name, kind } = file;
  if ('problem' in file) return { name, kind, subject: null, expires_at: null, days_left: null, problem: file.problem };
  return {
    name,
    kind,
    subject: file.subject,
    expires_at: file.until,
    days_left: daysUntil(file.until, now),
    problem: problemOf(file, now),
  };
}

function problemOf(file: { from: string; until: string; ours: boolean | undefined }, now: Date): string | null {
  if (Date.parse(file.until) <= now.getTime()) return `expired on ${day(file.until)}`;
  if (Date.parse(file.from) > now.getTime()) return `is not valid before ${day(file.from)}`;
  return file.ours === false ? 'is not signed by the CA in ca.pem' : null;
}

function judgeCertificate({ name, problem, days_left }: CertificateState, thresholds: ModuleThresholds): Finding {
  return problem === null ? certificateEnds(name, days_left, thresholds) : fact('critical', `${name} ${problem}`);
}

function listState(list: RevocationListFile, now: Date): RevocationListState {
  if ('problem' in list) return { next_update: null, hours_left: null, problem: list.problem };
  const { next_update, this_update, ours } = list;
  const leftMs = next_update === null ? null : Date.parse(next_update) - now.getTime();
  return {
    next_update,
    hours_left: leftMs === null ? null : Math.floor(leftMs / HOUR_MS),
    problem: listProblem(ours, this_update, next_update, now),
  };
}

function listProblem(ours: boolean | undefined, from: string, until: string | null, now: Date): string | null {
  if (ours === undefined) return "can't be checked without ca.pem";
  if (!ours) return 'is not signed by the CA in ca.pem';
  if (Date.parse(from) > now.getTime()) return `is not valid before ${from}`;
  if (until === null) return 'has no next update time';
  return Date.parse(until) <= now.getTime()
    ? `expired on ${until}, so clients and servers that check it reject everyone`
    : null;
}

function judgeList({ problem, hours_left }: RevocationListState): Finding[] {
  if (problem !== null) return [fact('critical', `${LIST} ${problem}`)];
  if (hours_left === null || hours_left >= LIST_WARNING_HOURS) return [];
  const left = counted(hours_left, 'hour');
  return [fact('warning', `${LIST} expires in ${left} and was not renewed; after that every client is rejected`)];
}

function day(iso: string): string {
  return iso.slice(0, 10);
}
