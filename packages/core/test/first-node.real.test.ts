import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import { openAuthority } from '@holdfast/pki/authority';
import { retentionFiles } from '../admin/retention-files.ts';
import { readNodeId } from '../admin/server.ts';
import { USERS_FILE } from '../admin/users-document.ts';
import { usersFile } from '../admin/users-file.ts';
import { filesOfFirstNode, missingFromFirstNode } from '../first-node.ts';
import { readMissionTokenKey } from '../missions/credentials.ts';

const NAMES = ['core', 'core-2'];
const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-first-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const missing = (now = new Date()) => missingFromFirstNode(directory, now);

it('waits for each file of the first node, and names it', async () => {
  expect(missing()).toContain('ca.pem is missing');
  await ensureServerCertificate(directory, NAMES, new Date());
  for (const file of filesOfFirstNode(directory)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '', { flag: 'a' });
  }
  expect(missing()).toBeUndefined();
  for (const file of filesOfFirstNode(directory).slice(1)) {
    rmSync(file);
    expect(missing()).toBe(`${file} is missing`);
    writeFileSync(file, '');
  }
});

it('has nothing to wait for once a first node has started, even if the certificate is to be renewed', async () => {
  await ensureServerCertificate(directory, NAMES, new Date());
  const authority = await openAuthority(directory, { validityDays: 1 });
  await authority.writeRevocationList([], new Date());
  usersFile(join(directory, USERS_FILE), log);
  readNodeId(directory);
  readMissionTokenKey(directory);
  retentionFiles(directory);
  expect(missing()).toBeUndefined();
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
  expect(missing(inDays(729))).toBeUndefined();
  expect(missing(inDays(731))).toMatch(/takserver\.pem is missing or expired/);
});
