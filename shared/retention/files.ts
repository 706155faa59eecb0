// Reads and writes the retention files of the core in {data_dir}/conf/retention, with a memory file
// of what Holdfast wrote. The core reads them when it starts. Their content is untrusted, and links
// to elsewhere are not followed.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access, mkdir, open, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { z } from 'zod';
import { AppError, codeOf } from '@holdfast/kit/app-error';
import { FileProblem, readBounded } from '@holdfast/kit/files';
import { KEEP_ALL, NEVER } from '@holdfast/kit/retention';
import { fileLock, type KeptFile, replaceKeptFile, temporaryOf } from '@holdfast/kit/shared-file';
import { YamlFault } from '@holdfast/kit/yaml-edit';
import {
  NO_MEMORY,
  planRetention,
  POLICY_FILE,
  readSchedule,
  type RetentionMemory,
  type RetentionPlan,
  SCHEDULE_FILE,
} from './documents.ts';
import { readPolicy } from './policy-text.ts';
import type { RetentionFileContents, RetentionFiles, SyncedRetention, WantedRetention } from './port.ts';

const MEMORY_FILE = '.holdfast.json';
const LOCK_FILE = '.holdfast.lock';
const RELEASE_PROGRAM = 'takserver-retention.jar';
const LOG_FILE = 'logs/takserver-retention.log';
const MAX_BYTES = 1024 * 1024;
const MAX_LOG_BYTES = 512 * 1024;
const MAX_LOG_LINES = 2000;
/** Tries when another writer was faster; each one reads everything again. */
const MAX_TRIES = 5;

const memorySchema = z.object({
  policy: z.array(z.object({ sha256: z.string().max(64), owned: z.array(z.enum(['cot', 'geochat'])).max(2) })).max(8),
  schedule: z.array(z.object({ sha256: z.string().max(64), owned: z.enum(['variable', 'default']).nullable() })).max(8),
});

/** Replaces a file as a whole; fails with `Changed` if it differs from what was read. */
export type ReplaceFile = (file: KeptFile) => Promise<void>;

/** `dataDir` is CORE_DATA_DIR. */
export function retentionFiles(dataDir: string, replace: ReplaceFile = replaceKeptFile): RetentionFiles {
  return new RetentionDirectory(dataDir, replace);
}

class RetentionDirectory implements RetentionFiles {
  readonly #dataDir: string;
  readonly #directory: string;
  readonly #replace: ReplaceFile;

  constructor(dataDir: string, replace: ReplaceFile) {
    this.#dataDir = dataDir;
    this.#directory = join(dataDir, 'conf', 'retention');
    this.#replace = replace;
  }

  async read(): Promise<RetentionFileContents> {
    await refuseLinks(this.#dataDir, this.#directory);
    const [policyText, scheduleText] = [await this.#textOf(POLICY_FILE), await this.#textOf(SCHEDULE_FILE)];
    const { policy, exemptKeywords } =
      policyText === undefined
        ? { policy: { ...KEEP_ALL }, exemptKeywords: [] }
        : readOf(this.#pathOf(POLICY_FILE), () => readPolicy(policyText));
    const schedule =
      scheduleText === undefined ? NEVER : readOf(this.#pathOf(SCHEDULE_FILE), () => readSchedule(scheduleText));
    return { policy, exemptKeywords, schedule };
  }

  async sync(given: WantedRetention): Promise<SyncedRetention> {
    const isRelease = await hasReleaseProgram(this.#dataDir);
    if (given.unit === 'days' && isRelease) throw daysAtRelease(this.#dataDir);
    const isUnset = (given.cot ?? given.geochat ?? given.cron) === undefined;
    const wanted: WantedRetention = isRelease && isUnset ? { ...given, unit: 'seconds' } : given;
    await refuseLinks(this.#dataDir, this.#directory);
    const seen = await this.#look(wanted);
    if (isDone(seen)) return { written: [], messages: seen.plan.messages };
    try {
      await makeDirectory(this.#dataDir, this.#directory);
      return await fileLock(this.#pathOf(LOCK_FILE), async () => {
        await removeLeftovers(this.#directory);
        return this.#syncLocked(wanted);
      });
    } catch (error) {
      throw fileFailure(error, this.#directory);
    }
  }

  log(): Promise<string[] | undefined> {
    return lastLines(join(this.#dataDir, LOG_FILE));
  }

  #pathOf(name: string): string {
    return join(this.#directory, name);
  }

  async #textOf(name: string): Promise<string | undefined> {
    const path = this.#pathOf(name);
    try {
      const bytes = await readBounded(path, MAX_BYTES, { ownOnly: true });
      return utf8(bytes);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw fileFailure(error, path);
    }
  }

  async #memoryOf(): Promise<{ memory: RetentionMemory; text: string | undefined }> {
    const text = await this.#textOf(MEMORY_FILE);
    const parsed = memorySchema.safeParse(jsonOf(text ?? ''));
    return { text, memory: parsed.success ? parsed.data : NO_MEMORY };
  }

  async #look(wanted: WantedRetention): Promise<Look> {
    const texts = { policy: await this.#textOf(POLICY_FILE), schedule: await this.#textOf(SCHEDULE_FILE) };
    const { memory, text } = await this.#memoryOf();
    const plan = planRetention(texts, memory, wanted, sha256);
    if (!('fault' in plan)) return { texts, memory, memoryText: text, plan };
    throw plan.file === undefined
      ? new AppError('invalid', `${plan.fault}.`)
      : unreadable(this.#pathOf(plan.file), plan.line, plan.fault);
  }

  async #carryOut({ texts, memory, memoryText, plan }: Look): Promise<string[]> {
    const ours = { path: this.#pathOf(MEMORY_FILE), mode: 0o600, directory: this.#directory };
    const after = memoryJson(plan.memory);
    const writes = [
      { name: POLICY_FILE, before: texts.policy, text: plan.policy },
      { name: SCHEDULE_FILE, before: texts.schedule, text: plan.schedule },
    ].filter((each): each is Write => each.text !== undefined);
    let remembered = memoryText;
    let held = memoryJson(memory);
    if (writes.length > 0) {
      const between = memoryJson({
        policy: [...memory.policy, ...plan.memory.policy].slice(-8),
        schedule: [...memory.schedule, ...plan.memory.schedule].slice(-8),
      });
      if (between !== held) await this.#replace({ ...ours, before: remembered, text: between });
      if (between !== held) remembered = between;
      held = between;
    }
    for (const { name, before, text } of writes)
      await this.#replace({ path: this.#pathOf(name), before, text, mode: 0o644, directory: this.#directory });
    if (after !== held) await this.#replace({ ...ours, before: remembered, text: after });
    return writes.map(({ name }) => name);
  }

  async #syncLocked(wanted: WantedRetention): Promise<SyncedRetention> {
    for (let tries = 1; ; tries++) {
      const seen = await this.#look(wanted);
      try {
        const written = await this.#carryOut(seen);
        return { written, messages: seen.plan.messages };
      } catch (error) {
        if (!(error instanceof FileProblem) || tries >= MAX_TRIES) throw error;
      }
    }
  }
}

interface Look {
  texts: { policy: string | undefined; schedule: string | undefined };
  memory: RetentionMemory;
  memoryText: string | undefined;
  plan: RetentionPlan;
}

interface Write {
  name: string;
  before: string | undefined;
  text: string;
}

function isDone({ plan, memory }: Look): boolean {
  return plan.policy === undefined && plan.schedule === undefined && memoryJson(memory) === memoryJson(plan.memory);
}

function memoryJson(memory: RetentionMemory): string {
  return `${JSON.stringify(memory, null, 2)}\n`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FileProblem('is not UTF-8 text');
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

async function hasReleaseProgram(dataDir: string): Promise<boolean> {
  return access(join(dataDir, RELEASE_PROGRAM)).then(
    () => true,
    () => false,
  );
}

function daysAtRelease(dataDir: string): AppError {
  return new AppError(
    'invalid',
    `CORE_RETENTION_UNIT=days, but ${join(dataDir, RELEASE_PROGRAM)} exists: that core is a TAK Server release, which counts seconds. It would delete data older than half a minute where 30 days are meant. Remedy: set CORE_RETENTION_UNIT=seconds.`,
  );
}

/** `directory` may be missing; if it exists, it must be inside `dataDir`. */
async function refuseLinks(dataDir: string, directory: string): Promise<void> {
  try {
    const root = await realpath(dataDir);
    const real = await realpath(directory).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    if (real === undefined || real === root || real.startsWith(`${root}${sep}`)) return;
    throw new AppError(
      'invalid',
      `${directory} points outside ${dataDir} (to ${real}) and is not followed. Remedy: replace the link with a directory.`,
    );
  } catch (error) {
    throw fileFailure(error, codeOf(error) === 'ENOENT' ? dataDir : directory);
  }
}

/** Creates the directories one by one below `dataDir`, which must exist. */
async function makeDirectory(dataDir: string, directory: string): Promise<void> {
  for (const path of [join(dataDir, 'conf'), directory]) {
    await mkdir(path, { mode: 0o755 }).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error;
    });
    if (!(await stat(path)).isDirectory()) throw Object.assign(new Error(path), { code: 'ENOTDIR' });
  }
  await refuseLinks(dataDir, directory);
}

/** Removes files of a process that was killed while writing; the caller holds the lock. */
async function removeLeftovers(directory: string): Promise<void> {
  const mine = [POLICY_FILE, SCHEDULE_FILE, MEMORY_FILE].map((name) => basename(temporaryOf(name, '')));
  for (const name of await readdir(directory))
    if (mine.some((start) => name.startsWith(start))) await rm(join(directory, name), { force: true });
}

function readOf<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof YamlFault) throw unreadable(path, error.line, error.message);
    throw error;
  }
}

function unreadable(path: string, line: number | undefined, fault: string): AppError {
  const where = line === undefined ? path : `${path} line ${line}`;
  return new AppError(
    'invalid',
    `${where}: ${fault}. Remedy: correct that line, or delete the file. A new one is created and keeps everything that no variable limits.`,
  );
}

function fileFailure(error: unknown, path: string): unknown {
  if (error instanceof AppError) return error;
  if (error instanceof FileProblem)
    return new AppError('invalid', `${path} ${error.message}. Remedy: replace it with a regular file, or remove it.`);
  const code = codeOf(error);
  if (code === 'ELOOP')
    return new AppError('invalid', `${path} is a link and is not followed. Remedy: put the file itself there.`);
  if (code === undefined) return error;
  const cause = error instanceof Error ? error : undefined;
  return new AppError(
    'unavailable',
    `Couldn't read or write ${path} (${code}). Remedy: check its owner, its mode and its disk.`,
    { cause },
  );
}

/** The end of the log without an incomplete last line; undefined if there is no such file. */
async function lastLines(path: string): Promise<string[] | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const found = await file.stat();
    if (!found.isFile()) throw new FileProblem('is not a file');
    const length = Math.min(found.size, MAX_LOG_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, found.size - length);
    const lines = buffer.subarray(0, bytesRead).toString('utf8').split(/\r?\n/);
    if (length < found.size) lines.shift();
    lines.pop();
    return lines.slice(-MAX_LOG_LINES);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw fileFailure(error, path);
  }
}
