// Proves one backup, level by level: exists, complete, decrypts, restores, serves.

import { createHash, type Hash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ReadArchive, verifyArchive } from '@holdfast/backup/archive';
import { decryptionKeyOf, type ProofHandover, targetOf } from '@holdfast/backup/handover';
import { rowsOf, type VerifiedArchive } from '@holdfast/backup/manifest';
import type { RunContext } from '@holdfast/backup/service';
import type { DatabasePlace } from '@holdfast/backup/tables';
import { fingerprintOf } from '@holdfast/backup/take';
import type { BackupTarget } from '@holdfast/backup/target';
import { AppError, messageOf, StackError } from '@holdfast/kit/app-error';
import { basesOf } from '@holdfast/kit/directory';
import { formatBytes, formatSeconds, grouped } from '@holdfast/kit/format';
import type { Log } from '@holdfast/kit/log';
import { Secret } from '@holdfast/kit/secret';
import { certificateFiles } from '@holdfast/pki/certificate-files';
import type { Proof, ProofLevel } from '../../../shared/backups/port.ts';
import { type BuildOptions, buildData, checkRoom } from '../backup/build-data.ts';
import { guardScript, takeLock } from '../process/guard.ts';
import { layoutOf, makeDirectories } from '../process/layout.ts';
import { countRows, Failed, newestEvent } from './rows.ts';
import { lockScratch, makeScratch, removeScratch, startScratch } from './scratch.ts';
import { type Check, checkServed, type ExpectedEvents, type KnownEvent } from './serve.ts';

const EVENTS = 'cot_router';
const WITHOUT_KEY =
  'The archive is encrypted for a recipient (BACKUP_RECIPIENT): only the holder of the private key can open it';
const RELEASE_STACK =
  'A TAK Server release and authentik do not run in a scratch instance: their rows were loaded, and nothing was started on them';

export class ProofRun {
  readonly #handover: ProofHandover;
  readonly #context: RunContext;
  readonly #log: Log;
  readonly #target: BackupTarget;
  readonly #checks: Proof['checks'] = [];
  readonly #begun = performance.now();
  #level: ProofLevel | null = null;
  #limit: Proof['limit'] = null;

  constructor(handover: ProofHandover, context: RunContext, log: Log) {
    this.#handover = handover;
    this.#context = context;
    this.#log = log;
    this.#target = targetOf(handover.storage);
  }

  /**
   * Rejects if the proof could not be done: the target is away, too little room. Whatever happens,
   * nothing of the scratch instance is left.
   */
  async run(): Promise<Proof> {
    const { home, scratch } = this.#handover;
    let error: string | null = null;
    const lock = await lockScratch(home, scratch);
    try {
      const data = await makeScratch(scratch);
      await this.#levels(data);
    } catch (failure) {
      this.#context.signal.throwIfAborted();
      if (!(failure instanceof Failed)) throw failure;
      error = failure.message;
    } finally {
      await removeScratch(scratch).catch((failure: unknown) => this.#leave(failure));
      await lock.release();
    }
    const seconds = Math.round((performance.now() - this.#begun) / 100) / 10;
    return {
      level: this.#level,
      at: new Date().toISOString(),
      seconds,
      error,
      limit: this.#limit,
      checks: this.#checks,
    };
  }

  /** What can't be deleted now is deleted before the next proof. */
  #leave(failure: unknown): void {
    this.#log.warn('proof.leftovers_kept', { error: messageOf(failure) });
  }

  async #levels(data: string): Promise<void> {
    await this.#exists();
    this.#level = 'exists';
    const open = await this.#complete();
    this.#level = 'complete';
    const key = decryptionKeyOf(this.#handover);
    if (key === undefined) {
      this.#limit = { level: 'complete', reason: WITHOUT_KEY };
      return;
    }
    const { signal } = this.#context;
    const archive: ReadArchive = { open, key, signal };
    const verified = await this.#decrypts(archive);
    this.#level = 'decrypts';
    const expected = await this.#restores(data, archive, verified);
    this.#level = 'restores';
    if (verified.header.stack === 'production') {
      this.#limit = { level: 'restores', reason: RELEASE_STACK };
      return;
    }
    await this.#serves(data, expected);
    this.#level = 'serves';
  }

  async #exists(): Promise<void> {
    const { name, bytes: expected } = this.#handover.backup;
    await this.#check('exists', async () => {
      const { body, bytes } = await this.#target.read(name).catch((error: unknown) => {
        // Another failure says nothing about the archive.
        if (error instanceof AppError && error.code === 'not_found') throw new Failed(`${name} is missing.`);
        throw new Unable(error);
      });
      body.destroy();
      if (bytes !== expected)
        throw new Failed(`The archive has ${grouped(bytes)} bytes, and was written with ${grouped(expected)}.`);
      return { detail: formatBytes(bytes) };
    });
  }

  /** Resolves with what opens it; an archive from S3 is fetched once. */
  async #complete(): Promise<() => Promise<Readable>> {
    const { name, sha256: expected, bytes } = this.#handover.backup;
    const copy = join(this.#handover.scratch, 'archive');
    const isFar = this.#target.kind === 's3';
    await this.#check('complete', async () => {
      if (isFar) await this.#requireRoom(bytes);
      const hash = createHash('sha256');
      const { body } = await this.#target.read(name).catch((error: unknown) => {
        throw new Unable(error);
      });
      const reading = Readable.from(this.#hashed(body, hash, bytes), { objectMode: false });
      await (isFar ? pipeline(reading, createWriteStream(copy, { mode: 0o600 })) : drain(reading)).catch(
        (error: unknown) => {
          throw new Unable(error);
        },
      );
      if (hash.digest('hex') !== expected)
        throw new Failed('The archive is not as it was written: its SHA-256 differs.');
      return { detail: `SHA-256 ${expected.slice(0, 16)}…` };
    });
    return async () => (isFar ? createReadStream(copy) : (await this.#target.read(name)).body);
  }

  async *#hashed(body: AsyncIterable<Uint8Array>, hash: Hash, bytes: number): AsyncGenerator<Uint8Array> {
    let done = 0;
    for await (const chunk of body) {
      this.#context.signal.throwIfAborted();
      hash.update(chunk);
      done += chunk.length;
      this.#context.report({ phase: 'Reading the archive', percent: share(done, bytes, 0, 10) });
      yield chunk;
    }
  }

  async #decrypts(archive: ReadArchive): Promise<VerifiedArchive> {
    const { bytes, rows, ca_fingerprint: fingerprint } = this.#handover.backup;
    const verified = await this.#check('decrypts', async () => {
      const progress = (done: number): void =>
        this.#context.report({ phase: 'Decrypting the archive', percent: share(done, bytes, 10, 30) });
      const value = await verifyArchive({ ...archive, progress });
      const { header, manifest } = value;
      if (rowsOf(manifest) !== rows || header.ca_fingerprint !== fingerprint)
        throw new Failed('The archive is another one than its sidecar file describes.');
      return { detail: `${grouped(manifest.entries.length)} entries match the manifest`, value };
    });
    if (verified === undefined) throw new Failed('The archive was not read.');
    return verified;
  }

  async #restores(data: string, archive: ReadArchive, verified: VerifiedArchive): Promise<ExpectedEvents> {
    const { report } = this.#context;
    let newest: KnownEvent | undefined;
    await this.#check('restores', async () => {
      const progress = (phase: string): void =>
        report({ phase: `Scratch instance: ${phase}`, percent: loadedShare(phase, verified) });
      const inspect = async (databases: readonly DatabasePlace[]): Promise<void> => {
        report({ phase: 'Counting rows', percent: 75 });
        await countRows(databases, verified);
        newest = await newestEvent(databases);
      };
      await this.#build(data, archive, verified, { progress, inspect });
      return {
        detail: `${grouped(rowsOf(verified.manifest))} rows in ${tables(verified)} tables, as many as in the manifest`,
      };
    });
    await this.#check('CA', async () => {
      const found = await fingerprintOf(certificateFiles(layoutOf(data).core).ca);
      if (found !== verified.header.ca_fingerprint) throw new Failed('The restored CA is another one.');
      return { detail: `SHA-256 ${found.slice(0, 16)}…` };
    });
    const events = verified.manifest.databases
      .find(({ key }) => key === 'core')
      ?.tables.find(({ name }) => name === EVENTS);
    return { rows: events === undefined || events.omitted ? undefined : events.rows, newest };
  }

  async #build(
    data: string,
    archive: ReadArchive,
    verified: VerifiedArchive,
    hooks: Pick<BuildOptions, 'progress' | 'inspect'>,
  ): Promise<void> {
    const { home, scratch } = this.#handover;
    try {
      checkRoom(scratch, verified);
    } catch (error) {
      throw new Unable(error);
    }
    const layout = layoutOf(data);
    makeDirectories(layout);
    const guard = await takeLock(guardScript(home), layout.lock, () => undefined);
    if (guard === undefined) throw new Unable(new StackError('Another proof is running.', 'wait until it ends'));
    try {
      await buildData({ home, layout, archive, verified, guard, aborted: this.#context.signal, ...hooks });
    } finally {
      await guard.release();
    }
  }

  async #serves(data: string, expected: ExpectedEvents): Promise<void> {
    const { report, signal } = this.#context;
    const progress = (phase: string): void => report({ phase, percent: 85 });
    const started = await this.#check('start', async () => {
      const begun = performance.now();
      const value = await startScratch(this.#handover.home, data, progress, signal);
      const seconds = formatSeconds((performance.now() - begun) / 1000);
      return { detail: `database, identity provider and core run after ${seconds}`, value };
    });
    if (started === undefined) throw new Failed('The restored data was not started.');
    const { stack, plan } = started;
    try {
      report({ phase: 'Using the scratch instance', percent: 92 });
      const { ports, configuration, layout } = plan;
      const { settings } = configuration;
      const served = {
        urls: {
          identity: plan.identity.url,
          ldap: `ldap://127.0.0.1:${ports.ldap}`,
          coreApi: `https://127.0.0.1:${ports.core}`,
          enrollment: `https://127.0.0.1:${ports.enrollment}`,
          streaming: `tls://127.0.0.1:${ports.streaming}`,
        },
        coreDirectory: layout.core,
        database: new Secret(String(plan.stackFile['database'])),
        bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
        identityToken: settings.IDENTITY_TOKEN,
        ldapPassword: settings.LDAP_BIND_PASSWORD,
      };
      await checkServed(served, expected, this.#check, this.#log);
    } finally {
      await stack.stop();
    }
  }

  /** Records the outcome of a step; its failure ends the proof. */
  readonly #check: Check = async (name, work) => {
    try {
      const { detail, value } = await work();
      this.#checks.push({ name, ok: true, detail });
      this.#log.info('proof.check', { check: name, ok: true, detail });
      return value;
    } catch (error) {
      this.#context.signal.throwIfAborted();
      if (error instanceof Unable) throw error.cause;
      const detail = messageOf(error);
      this.#checks.push({ name, ok: false, detail });
      this.#log.warn('proof.check', { check: name, ok: false, detail });
      throw new Failed(detail, { cause: error });
    }
  };

  async #requireRoom(bytes: number): Promise<void> {
    const { scratch } = this.#handover;
    await mkdir(scratch, { recursive: true });
    const { bavail, bsize } = await statfs(scratch);
    if (bavail * bsize > bytes) return;
    throw new Unable(
      new StackError(
        `The disk of ${scratch} has ${formatBytes(bavail * bsize)} free, and the proof needs ${formatBytes(bytes)} for the archive.`,
        'free some space, or set BACKUP_PROOF=off',
      ),
    );
  }
}

/** The proof can't be done, and that says nothing about the archive. */
class Unable extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
  }
}

function tables({ manifest }: VerifiedArchive): number {
  return manifest.databases.reduce((sum, each) => sum + each.tables.length, 0);
}

/** Percent of the proof when a table begins to load; null while indexes are built. */
function loadedShare(phase: string, { manifest }: VerifiedArchive): number | null {
  const name = /^Loading (.+)$/.exec(phase)?.[1];
  const all = manifest.databases.flatMap((database) => database.tables);
  const at = all.findIndex((table) => table.name === name);
  if (at < 0) return null;
  const sum = (some: typeof all): number => some.reduce((bytes, table) => bytes + table.bytes, 0);
  return share(sum(all.slice(0, at)), sum(all), 30, 75);
}

async function drain(reading: AsyncIterable<unknown>): Promise<void> {
  for await (const chunk of reading) void chunk;
}

/** Percent between `from` and `to`. */
function share(done: number, whole: number, from: number, to: number): number {
  return Math.round(from + (to - from) * Math.min(1, done / Math.max(1, whole)));
}
