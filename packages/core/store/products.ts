// Keeps Android packages (apps and plugins for ATAK) as files below `{data_dir}/update`, each with
// a file of facts beside it. A package without facts is left over from a crash.

import { createReadStream, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { serialize } from '@holdfast/kit/concurrency';
import { replaceFile, syncDirectory } from '@holdfast/kit/files';

/** What an Android package says of itself. */
export interface ApkFacts {
  packageName: string;
  /** As people read it; the revision if it has none. */
  version: string;
  /** Counts up from version to version. */
  revision: number;
  /** Undefined if it is a resource of the package. */
  label: string | undefined;
  description: string | undefined;
  /** Which ATAK a plugin is made for: `com.atakmap.app@5.5.0.CIV`. Undefined: it is no plugin. */
  pluginApi: string | undefined;
  /** API level of Android. */
  minSdk: number;
}

export interface Product extends ApkFacts {
  /** SHA-256 of the package, lower-case hex. Its name. */
  hash: string;
  /** As people call it. */
  name: string;
  sizeBytes: number;
  submitter: string;
  /** ISO 8601. */
  added: string;
}

/** Of all together. */
export const PRODUCT_LIMITS = { products: 200, bytes: 2 * 1024 ** 3 } as const;

export interface ProductStore {
  /** By package name, then the newest revision first. */
  list(): Promise<Product[]>;
  find(hash: string): Promise<Product | undefined>;
  /**
   * Takes over the file at `path`, in place of other revisions of the package for the same ATAK.
   * `full`: there are too many, and nothing was changed.
   */
  add(product: Product, path: string): Promise<'added' | 'full'>;
  /** False when there is none. */
  remove(hash: string): Promise<boolean>;
  /** So many bytes of a package, from the first (0). */
  read(hash: string, from: number, length: number): AsyncIterable<Uint8Array>;
}

const FACTS = '.json';
const PACKAGE = '.apk';
const HASH = /^[0-9a-f]{64}$/;

/** Throws a StackError when the directory can't be used. */
export class ProductFiles implements ProductStore {
  readonly #directory: string;
  readonly #change = serialize();

  constructor(directory: string) {
    this.#directory = directory;
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const names = new Set(readdirSync(directory));
      const isWhole = (name: string): boolean =>
        name.endsWith(FACTS) || (name.endsWith(PACKAGE) && names.has(`${name.slice(0, -PACKAGE.length)}${FACTS}`));
      for (const name of names) if (!isWhole(name)) rmSync(join(directory, name));
    } catch (cause) {
      throw new StackError(
        `Couldn't use ${directory} for Android packages: ${messageOf(cause)}.`,
        'let the account of the core write there, and keep nothing else under that name',
        cause,
      );
    }
  }

  async list(): Promise<Product[]> {
    const names = (await readdir(this.#directory)).filter((name) => name.endsWith(FACTS));
    const found = await Promise.all(names.map((name) => this.find(name.slice(0, -FACTS.length))));
    return found.filter((product) => product !== undefined).toSorted(compare);
  }

  async find(hash: string): Promise<Product | undefined> {
    if (!HASH.test(hash)) return undefined;
    try {
      return JSON.parse(await readFile(this.#path(hash, FACTS), 'utf8')) as Product;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  add(product: Product, path: string): Promise<'added' | 'full'> {
    return this.#change(async () => {
      const all = (await this.list()).filter(({ hash }) => hash !== product.hash);
      const older = all.filter(
        ({ packageName, pluginApi }) => packageName === product.packageName && pluginApi === product.pluginApi,
      );
      const kept = all.filter((each) => !older.includes(each));
      const bytes = kept.reduce((sum, { sizeBytes }) => sum + sizeBytes, product.sizeBytes);
      if (kept.length >= PRODUCT_LIMITS.products || bytes > PRODUCT_LIMITS.bytes) return 'full';
      await this.#take(product, path);
      for (const { hash } of older) await this.#remove(hash);
      return 'added';
    });
  }

  remove(hash: string): Promise<boolean> {
    return this.#change(async () => {
      if ((await this.find(hash)) === undefined) return false;
      await this.#remove(hash);
      return true;
    });
  }

  async *read(hash: string, from: number, length: number): AsyncGenerator<Uint8Array> {
    if (length > 0) yield* createReadStream(this.#path(hash, PACKAGE), { start: from, end: from + length - 1 });
  }

  /** The package is on the disk before its facts are. */
  async #take(product: Product, path: string): Promise<void> {
    const file = await open(path, 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
    const { size } = await stat(path);
    if (size !== product.sizeBytes) throw new Error(`the package has ${size} of ${product.sizeBytes} bytes`);
    await rename(path, this.#path(product.hash, PACKAGE));
    await replaceFile(this.#path(product.hash, FACTS), JSON.stringify(product));
    syncDirectory(this.#directory);
  }

  async #remove(hash: string): Promise<void> {
    await rm(this.#path(hash, FACTS), { force: true });
    await rm(this.#path(hash, PACKAGE), { force: true });
  }

  #path(hash: string, ending: string): string {
    return join(this.#directory, `${hash}${ending}`);
  }
}

function compare(one: Product, other: Product): number {
  const byName = one.packageName < other.packageName ? -1 : Number(one.packageName > other.packageName);
  return byName || other.revision - one.revision;
}
