// A new certificate for the CA, or a whole new CA. What counts is one file that is there or not: a
// crash leaves the old CA or the new one.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { StackError } from '@holdfast/kit/app-error';
import { syncDirectory, writeFileAtomically } from '@holdfast/kit/files';
import { LIGHT_CURVE, newCa, prolongedCa } from './certificate-authority.ts';
import type { CertificateFiles } from './certificate-files.ts';

const renewalSchema = z.object({ keep: z.string().regex(/^old-[0-9TZ-]+$/), key: z.string(), certificate: z.string() });

/**
 * Gives the CA a new certificate for its key and name. Returns the directory that the old one was
 * copied to.
 */
export async function prolongCa(files: CertificateFiles, now: Date): Promise<string> {
  finishRenewal(files);
  const certificate = await prolongedCa(files, now);
  const kept = join(files.directory, keptName(files, now));
  mkdirSync(kept, { recursive: true, mode: 0o700 });
  writeFileAtomically(join(kept, 'ca.pem'), readFileSync(files.ca, 'utf8'), 0o644);
  writeFileAtomically(files.ca, certificate, 0o644);
  return kept;
}

/**
 * Puts a new CA in the place of the old one; one that was begun and not finished is finished, no
 * other is made. Returns the directory that everything of the old one was moved to.
 */
export async function replaceCa(files: CertificateFiles, now: Date): Promise<string> {
  if (!existsSync(files.renewal)) {
    const renewal = { keep: keptName(files, now), ...(await newCa(now, LIGHT_CURVE)) };
    writeFileAtomically(files.renewal, `${JSON.stringify(renewal)}\n`);
  }
  const { keep } = readRenewal(files.renewal);
  finishRenewal(files);
  return join(files.directory, keep);
}

/** Completes `replaceCa` when it was begun; called before the files of the CA are used. */
export function finishRenewal(files: CertificateFiles): void {
  if (!existsSync(files.renewal)) return;
  const { keep, key, certificate } = readRenewal(files.renewal);
  const kept = join(files.directory, keep);
  mkdirSync(kept, { recursive: true, mode: 0o700 });
  const { directory, renewal, ...all } = files;
  for (const file of Object.values(all))
    if (existsSync(file) && !isNew(file, [key, certificate]))
      renameSync(file, join(kept, file.slice(directory.length + 1)));
  syncDirectory(kept);
  syncDirectory(directory);
  writeFileAtomically(files.caKey, key);
  writeFileAtomically(files.ca, certificate, 0o644);
  rmSync(renewal);
  syncDirectory(directory);
}

function isNew(file: string, contents: readonly string[]): boolean {
  return contents.includes(readFileSync(file, 'utf8'));
}

function readRenewal(file: string): z.infer<typeof renewalSchema> {
  const read = z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue('no JSON');
        return z.NEVER;
      }
    })
    .pipe(renewalSchema)
    .safeParse(readFileSync(file, 'utf8'));
  if (read.success) return read.data;
  throw new StackError(
    `${file} cannot be understood: the renewal of the CA that it belongs to cannot be finished.`,
    'put it back from a backup; or remove it while ca.pem and ca-do-not-share.key are there, to go on with these',
  );
}

/** `old-2026-11-22T023204Z`; never one that is there already. */
function keptName(files: CertificateFiles, now: Date): string {
  const name = `old-${now.toISOString().slice(0, 19).replaceAll(':', '')}Z`;
  let free = name;
  for (let next = 2; existsSync(join(files.directory, free)); next++) free = `${name}-${next}`;
  return free;
}
