// Reads the keys of backups from files: a passphrase, or an age identity.

import type { DecryptionKey, EncryptionKey } from '@holdfast/backup/archive';
import { StackError } from '@holdfast/kit/app-error';
import { UsageError } from '@holdfast/kit/command';
import { fileProblemOf, readBounded } from '@holdfast/kit/files';
import { Secret } from '@holdfast/kit/secret';
import { AGE_RECIPIENT } from '../../../shared/settings/backup.ts';

const MAX_BYTES = 64 * 1024;

/** Exactly one of them. */
export async function encryptionKey(
  passphraseFile: string | undefined,
  recipient: string | undefined,
): Promise<EncryptionKey> {
  if ((passphraseFile === undefined) === (recipient === undefined))
    throw new UsageError('give --passphrase-file FILE or --recipient age1...');
  if (passphraseFile !== undefined) return { passphrase: await passphraseIn(passphraseFile) };
  if (recipient !== undefined && AGE_RECIPIENT.test(recipient)) return { recipient };
  throw new UsageError('--recipient must be an age public key (age1...)');
}

/** Exactly one of them. */
export async function decryptionKey(
  passphraseFile: string | undefined,
  identityFile: string | undefined,
): Promise<DecryptionKey> {
  if (passphraseFile !== undefined) return { passphrase: await passphraseIn(passphraseFile) };
  if (identityFile !== undefined) return { identity: await identityIn(identityFile) };
  throw new UsageError('give the key: --passphrase-file FILE or --identity-file FILE');
}

/** The first line. */
async function passphraseIn(file: string): Promise<Secret> {
  const text = (await read(file)).split(/\r?\n/, 1)[0] ?? '';
  if (text.trim() !== '') return new Secret(text);
  throw new StackError(
    `${file} holds no passphrase: its first line is empty.`,
    'write the passphrase into its first line',
  );
}

async function identityIn(file: string): Promise<Secret> {
  const identity = (await read(file)).split(/\r?\n/).find((line) => line.startsWith('AGE-SECRET-KEY-'));
  if (identity !== undefined) return new Secret(identity.trim());
  throw new StackError(`${file} holds no age identity (AGE-SECRET-KEY-...).`, 'give the file that age-keygen wrote');
}

async function read(file: string): Promise<string> {
  try {
    return (await readBounded(file, MAX_BYTES)).toString('utf8');
  } catch (error) {
    throw new StackError(`${file} ${fileProblemOf(error)}.`, 'give a file that this user can read', error);
  }
}
