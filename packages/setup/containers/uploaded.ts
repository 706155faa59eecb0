// Looks into an archive that backup.sh sends to the backup container: proves it, shows what it
// holds, or brings parts of it back into the running light stack.

import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DecryptionKey } from '@holdfast/backup/archive';
import { DirectoryTarget } from '@holdfast/backup/directory-target';
import type { ProofHandover } from '@holdfast/backup/handover';
import { StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation } from '@holdfast/kit/command';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import { PART_USAGE, readPartArguments, runPart } from '@holdfast/stack/archive/program';
import { scratchOf } from '@holdfast/stack/backup/proof-child';
import { proveBackup } from '@holdfast/stack/operator/backup';
import { guardScript, takeLock } from '@holdfast/stack/process/guard';
import { type Backup, backupSchema } from '../../../shared/backups/port.ts';
import { AGE_RECIPIENT } from '../../../shared/settings/backup.ts';
import { databasesOf, readStack } from './backup.ts';
import { MOUNTS } from './places.ts';

/** On the volume of backups, which alone this container may write. */
const UPLOAD = join(MOUNTS.backups, 'upload');
const NEWLINE = 0x0a;

/** A stream that begins with lines. */
export interface Lines {
  /** The next line, without its end; empty at the end of the stream. */
  line: () => Promise<string>;
  /** Everything after the lines that were read. */
  rest: () => AsyncGenerator<Buffer>;
}

export function linesOf(stream: AsyncIterable<Buffer>): Lines {
  const chunks = stream[Symbol.asyncIterator]();
  let held = Buffer.alloc(0);
  return {
    async line() {
      for (;;) {
        const at = held.indexOf(NEWLINE);
        const next = at === -1 ? await chunks.next() : undefined;
        if (next !== undefined && next.done !== true) {
          held = Buffer.concat([held, next.value]);
          continue;
        }
        const text = held.toString('utf8', 0, at === -1 ? held.length : at);
        held = held.subarray(at === -1 ? held.length : at + 1);
        return text.replace(/\r$/, '');
      }
    },
    async *rest() {
      yield held;
      for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
    },
  };
}

/**
 * Proves it as the backup service does, and writes its sidecar with the proof to the standard
 * output. The second line of the input is the sidecar from before.
 */
export async function proveUploaded({ home }: Invocation, key: string, input: Lines): Promise<number> {
  const parsed = backupSchema.safeParse(json(await input.line()));
  if (!parsed.success)
    throw new StackError(
      'The file <archive>.json does not describe a backup.',
      'use the one that was made with the archive',
    );
  const backup = parsed.data;
  const isPassphrase = !AGE_RECIPIENT.test(key) && !key.startsWith('AGE-SECRET-KEY-');
  const handover: ProofHandover = {
    backup,
    storage: { target: UPLOAD, s3: { region: '' }, ...(isPassphrase ? { passphrase: key } : {}) },
    ...(key.startsWith('AGE-SECRET-KEY-') ? { identity: key } : {}),
    scratch: scratchOf(MOUNTS.backups),
    home,
  };
  return withUpload(home, input, backup, async (target) => {
    try {
      return await proveBackup(handover, new AbortController().signal);
    } finally {
      const [sidecar = backup] = await target.list();
      process.stdout.write(`${JSON.stringify(sidecar)}\n`);
    }
  });
}

/** `show|restore NAME ...` as for an embedded stack, into the light stack. */
export async function usePart(call: Invocation, key: DecryptionKey, input: Lines): Promise<number> {
  const { home, environment } = call;
  const args = argumentsOrUsage(() => readPartArguments(call), PART_USAGE);
  if (typeof args === 'number') return args;
  const stack = readStack(environment);
  if (stack.places.stack !== 'light')
    throw new StackError(
      'Parts of a backup are never restored into a stack with a TAK Server release: a running release keeps what it has read in memory.',
      'restore the whole archive beside it: ./scripts/setup.sh ARCHIVE --restore FILE',
    );
  const running = () => ({
    databases: databasesOf(stack),
    caFile: certificateFiles(MOUNTS.core).ca,
    place: {
      directory: MOUNTS.management,
      remedy: 'start it with ./scripts/start.sh. To see why it stopped: docker compose logs --tail 20 management',
    },
    identitySecret: environment['IDENTITY_SECRET_KEY'],
  });
  return withUpload(home, input, { name: 'archive' }, async (target) => {
    const archive = { open: async () => (await target.read('archive')).body, key };
    return runPart(args, archive, { home, data: MOUNTS.backups, running });
  });
}

/** One archive at a time. What a killed program left is deleted by the next one. */
async function withUpload<T>(
  home: string,
  input: Lines,
  backup: Backup | Pick<Backup, 'name'>,
  use: (target: DirectoryTarget) => Promise<T>,
): Promise<T> {
  const lock = join(MOUNTS.backups, 'run/upload.lock');
  mkdirSync(dirname(lock), { recursive: true, mode: 0o700 });
  const guard = await takeLock(guardScript(home), lock, () => undefined);
  if (guard === undefined)
    throw new StackError(
      'Another archive is being read in the container.',
      'wait until it has ended, then run it again',
    );
  try {
    rmSync(UPLOAD, { recursive: true, force: true });
    mkdirSync(UPLOAD, { mode: 0o700 });
    const target = new DirectoryTarget(UPLOAD);
    await target.write(backup.name, input.rest(), 'sha256' in backup ? { sidecar: () => backup } : {});
    return await use(target);
  } finally {
    rmSync(UPLOAD, { recursive: true, force: true });
    await guard.release();
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
