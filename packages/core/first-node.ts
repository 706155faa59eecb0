// What the first node of a cluster makes in the directory that all nodes share, and the others only
// read.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { isServerCertificateUsable } from '@holdfast/pki/server-certificate';
import { retentionFilesIn } from './admin/retention-files.ts';
import { nodeIdFile } from './admin/server.ts';
import { USERS_FILE } from './admin/users-document.ts';
import { missionTokenKeyFile } from './missions/credentials.ts';

/** All that a node which starts would make if it were missing, but for the certificates. */
export function filesOfFirstNode(directory: string): string[] {
  const { ca, revocationList, revocationIndex } = certificateFiles(directory);
  return [
    ca,
    nodeIdFile(directory),
    missionTokenKeyFile(directory),
    join(directory, USERS_FILE),
    ...retentionFilesIn(directory),
    revocationIndex,
    revocationList,
  ];
}

/**
 * What another node still waits for, as a part of a sentence; undefined: for nothing. A certificate
 * that the first node is about to renew serves until then.
 */
export function missingFromFirstNode(directory: string, now: Date): string | undefined {
  const missing = filesOfFirstNode(directory).find((file) => !existsSync(file));
  if (missing !== undefined) return `${missing} is missing`;
  return isServerCertificateUsable(directory, now)
    ? undefined
    : `${certificateFiles(directory).server} is missing or expired, or does not match its key`;
}
