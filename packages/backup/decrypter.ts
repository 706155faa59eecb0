// Opens archives with a passphrase or an age identity.

import { Decrypter, type Stanza } from 'age-encryption';
import { StackError } from '@holdfast/kit/app-error';
import type { Secret } from '@holdfast/kit/secret';

/** What opens an archive. */
export type DecryptionKey = { passphrase: Secret } | { identity: Secret };

const fileKeys = new WeakMap<DecryptionKey, { stanzas: string; fileKey: Uint8Array }>();

/** Derives the key of an archive once: a passphrase takes 64 MiB and a third of a second. */
export function decrypter(key: DecryptionKey): Decrypter {
  const [made, inner] = [new Decrypter(), new Decrypter()];
  if ('passphrase' in key) inner.addPassphrase(key.passphrase.reveal());
  else inner.addIdentity(key.identity.reveal());
  made.addIdentity({
    async unwrapFileKey(header: Stanza[]) {
      const stanzas = JSON.stringify(header.map(({ args, body }) => [args, [...body]]));
      const known = fileKeys.get(key);
      if (known?.stanzas === stanzas) return known.fileKey;
      const fileKey = await inner['unwrapFileKey'](header);
      if (fileKey !== null) fileKeys.set(key, { stanzas, fileKey });
      return fileKey;
    },
  });
  return made;
}

export function wrongKey(key: DecryptionKey, cause: unknown): StackError {
  return 'passphrase' in key
    ? new StackError(
        'The passphrase does not open this archive.',
        'give the passphrase that the backup was made with. An archive for an age recipient needs --identity-file',
        cause,
      )
    : new StackError(
        'The identity does not open this archive.',
        'give the age identity (AGE-SECRET-KEY-...) of the recipient. An archive with a passphrase needs --passphrase-file',
        cause,
      );
}
