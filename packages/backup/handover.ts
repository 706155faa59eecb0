// Defines what the backup service and its proofs are told at their start, in one environment
// variable each.

import { join } from 'node:path';
import { z } from 'zod';
import { takenHandover } from '@holdfast/kit/command';
import { Secret } from '@holdfast/kit/secret';
import { backupSchema } from '../../shared/backups/port.ts';
import type { Settings } from '../../shared/settings/table.ts';
import type { DecryptionKey, EncryptionKey } from './archive.ts';
import { DirectoryTarget } from './directory-target.ts';
import { S3Target } from './s3-target.ts';
import type { BackupTarget } from './target.ts';

export const BACKUP_VARIABLE = 'HOLDFAST_BACKUP';
export const PROOF_VARIABLE = 'HOLDFAST_PROOF';

/** The place of the archives and their key. */
const storageSchema = z.object({
  /** BACKUP_TARGET: a directory or s3://BUCKET/PREFIX. */
  target: z.string(),
  s3: z.object({
    url: z.string().optional(),
    region: z.string(),
    accessKey: z.string().optional(),
    secretKey: z.string().optional(),
  }),
  /** One of them. */
  passphrase: z.string().optional(),
  recipient: z.string().optional(),
});
export type BackupStorage = z.infer<typeof storageSchema>;

const handoverSchema = z.object({
  address: z.string(),
  port: z.number(),
  token: z.string(),
  storage: storageSchema,
  history: z.boolean(),
  proof: z.enum(['always', 'weekly', 'off']),
  keep: z.object({ days: z.number(), count: z.number() }),
  /** Data directory of an embedded stack; in containers where scratch instances may be. */
  data: z.string(),
  /** Root of the release. */
  home: z.string(),
});
export type BackupHandover = z.infer<typeof handoverSchema>;

const proofSchema = z.object({
  backup: backupSchema,
  storage: storageSchema,
  /** Opens an archive for a recipient; the service doesn't have it. */
  identity: z.string().optional(),
  /** Directory for the scratch instance, which exists only during a proof. */
  scratch: z.string(),
  home: z.string(),
});
export type ProofHandover = z.infer<typeof proofSchema>;

export interface BackupPlan {
  url: string;
  program: string;
  environment: Record<string, string>;
}

interface BackupFacts {
  settings: Settings;
  token: string;
  /** The data directory of an embedded stack; in containers where scratch instances may be. */
  data: string;
  address?: string;
}

/** How a stack runs the backup service; undefined while BACKUP_TARGET is unset. */
export function backupPlan(
  home: string,
  port: number,
  { settings, token, data, address = '127.0.0.1' }: BackupFacts,
): BackupPlan | undefined {
  const target = settings.BACKUP_TARGET;
  if (target === undefined) return undefined;
  const handover: BackupHandover = {
    address,
    port,
    token,
    storage: {
      target,
      s3: {
        url: settings.BACKUP_S3_URL,
        region: settings.BACKUP_S3_REGION,
        accessKey: settings.BACKUP_S3_ACCESS_KEY?.reveal(),
        secretKey: settings.BACKUP_S3_SECRET_KEY?.reveal(),
      },
      passphrase: settings.BACKUP_PASSPHRASE?.reveal(),
      recipient: settings.BACKUP_RECIPIENT,
    },
    history: settings.BACKUP_HISTORY,
    proof: settings.BACKUP_PROOF,
    keep: { days: settings.BACKUP_KEEP_DAYS, count: settings.BACKUP_KEEP_COUNT },
    data,
    home,
  };
  return {
    url: `http://${handover.address}:${port}`,
    program: join(home, 'dist/backup-service.js'),
    environment: { [BACKUP_VARIABLE]: JSON.stringify(handover) },
  };
}

/** Takes it out of the environment; throws without it. */
export function takeBackupHandover(environment: NodeJS.ProcessEnv): BackupHandover {
  return takenHandover(environment, BACKUP_VARIABLE, handoverSchema, 'start this through ./scripts/start.sh');
}

export function takeProofHandover(environment: NodeJS.ProcessEnv): ProofHandover {
  return takenHandover(environment, PROOF_VARIABLE, proofSchema, 'the backup service and backup.sh start this');
}

export function targetOf({ target, s3 }: Pick<BackupStorage, 'target' | 's3'>): BackupTarget {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(target) ?? [];
  if (bucket === undefined) return new DirectoryTarget(target);
  const { url, region, accessKey = '', secretKey = '' } = s3;
  const keys = { accessKey: new Secret(accessKey), secretKey: new Secret(secretKey) };
  return new S3Target({ bucket, prefix, url, region, ...keys });
}

export function encryptionKeyOf({ passphrase, recipient }: BackupStorage): EncryptionKey {
  if (passphrase !== undefined) return { passphrase: new Secret(passphrase) };
  if (recipient !== undefined) return { recipient };
  throw new Error('neither a passphrase nor a recipient');
}

/** Undefined if only the holder of the private key can open the archives. */
export function decryptionKeyOf({
  storage,
  identity,
}: Pick<ProofHandover, 'storage' | 'identity'>): DecryptionKey | undefined {
  if (identity !== undefined) return { identity: new Secret(identity) };
  return storage.passphrase === undefined ? undefined : { passphrase: new Secret(storage.passphrase) };
}
