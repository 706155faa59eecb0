// What may be called through the HOST service binding, and how a call and its outcome look on the way.

import { z } from 'zod';
import type { ErrorCode } from '@holdfast/kit/app-error';
import type { Asset } from '../host/port.ts';

// What may be called through the HOST service binding, and how a call and its outcome look on the way.

/** The ports behind the binding, with their methods. */
export const EXPOSED = {
  directory: ['signIn', 'find', 'probe'],
  doors: ['password', 'session', 'bearer', 'forget', 'lockouts', 'release'],
  signIns: [
    'openSession',
    'createToken',
    'recognise',
    'epoch',
    'sessions',
    'endSession',
    'endSessions',
    'tokens',
    'token',
    'endToken',
    'prune',
  ],
  audit: ['intend', 'conclude', 'note', 'list', 'verify', 'unfinished'],
  core: [
    'certificates',
    'certificate',
    'revokedCertificates',
    'revoke',
    'clients',
    'disconnect',
    'endConnection',
    'regroup',
    'plugins',
    'changePlugin',
    'status',
    'enrollmentAttempts',
  ],
  coreEnrollment: ['enroll', 'rules', 'token'],
  coreDevices: ['roles', 'connect', 'answers', 'send', 'received', 'close'],
  coreRetention: ['policy', 'changePolicy', 'schedule', 'changeSchedule', 'missionArchiving', 'begin', 'runs'],
  retentionFiles: ['read', 'sync', 'log'],
  coreVacuum: ['begin', 'settle'],
  coreNotices: ['announce'],
  coreAuthority: ['certificate', 'revocationList'],
  adminGrants: ['give', 'take'],
  clientKeys: ['keep', 'read', 'kept', 'remove'],
  bundles: ['withKey', 'trust'],
  disks: ['use'],
  coreFiles: ['certificates'],
  tls: ['inspect'],
  hostNames: ['resolve', 'ownAddresses'],
  containers: ['list'],
  configurationFiles: ['changedSinceStart'],
  health: ['current', 'takeDue', 'history', 'isComplete', 'put', 'forget', 'states', 'remember', 'remembered'],
  alerts: ['observe', 'history', 'takeDue', 'settle', 'list', 'summary', 'trouble', 'prune'],
  smtp: ['send'],
  heartbeat: ['beat', 'state'],
  jobStatistics: ['ended', 'elsewhere', 'figures'],
  requests: ['figures'],
  process: ['figures'],
  logFiles: ['names', 'tail'],
  assets: ['read'],
} as const;

export type ExposedPort = keyof typeof EXPOSED;

export const callSchema = z.object({ port: z.string(), method: z.string(), args: z.array(z.unknown()) });

/** What comes back: a value (absent for undefined), or what was thrown. */
export type Outcome = { value?: unknown } | { error: { code?: ErrorCode; message: string } };

/** An asset on its way: Base64 instead of bytes. */
export type WireAsset = Omit<Asset, 'body'> & { body: string };
