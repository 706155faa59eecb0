// Reads what this machine knows: name resolution, its addresses, its processes, log files and
// assets.

import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { open, readdir, readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { extname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setImmediate as soon } from 'node:timers/promises';
import { normalAddress } from '@holdfast/kit/addresses';
import { AppError, codeOf, messageOf } from '@holdfast/kit/app-error';
import { withTimeout } from '@holdfast/kit/timeout';
import type { Asset, Assets, HostNames, LogFiles, ProcessStatus, Resolution } from './port.ts';

const REASONS: Record<string, string> = {
  ENOTFOUND: 'no such name',
  ENODATA: 'the name has no address',
  EAI_AGAIN: 'name servers are not answering right now',
};

/** The resolver of this machine. Each address appears once, in its normal spelling. */
export function hostNames(options: { withinMs?: number } = {}): HostNames {
  const { withinMs: limitMs = 5000 } = options;
  const lookups = new Map<string, Promise<LookupAddress[]>>();

  /** Each lookup holds a thread while the name servers are silent, so one name never has two. */
  function addressesOf(name: string): Promise<LookupAddress[]> {
    const running = lookups.get(name);
    if (running !== undefined) return running;
    const found = lookup(name, { all: true }).finally(() => lookups.delete(name));
    lookups.set(name, found);
    return found;
  }

  async function resolve(name: string): Promise<Resolution> {
    const late = (): Error => new Error(`no answer within ${limitMs / 1000} s`);
    try {
      // Node warns about the empty name and finds no address for it.
      const found = name === '' ? [] : await withTimeout(limitMs, late, addressesOf(name));
      const addresses = distinct(found.map(({ address }) => address));
      return { addresses, error: addresses.length === 0 ? REASONS['ENODATA'] : undefined };
    } catch (error) {
      return { addresses: [], error: REASONS[codeOf(error) ?? ''] ?? messageOf(error) };
    }
  }

  async function ownAddresses(): Promise<string[]> {
    return distinct(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)));
  }

  return { resolve, ownAddresses };
}

/** Without zones: a link-local address is the same address on each interface. */
function distinct(addresses: readonly string[]): string[] {
  const plain = addresses.map((address) => address.replace(/%.*$/, ''));
  return [...new Set(plain.map((address) => normalAddress(address) ?? address))];
}

/**
 * Resource usage of this Node.js process at the moment of the call; nothing is sampled in between.
 */
export function nodeProcess(): ProcessStatus {
  return {
    async figures() {
      const requested = performance.now();
      await soon();
      const lag = performance.now() - requested;
      const { user, system } = process.cpuUsage();
      const { rss, heapUsed, heapTotal } = process.memoryUsage();
      const { active, idle } = performance.eventLoopUtilization();
      return {
        cpuSeconds: (user + system) / 1e6,
        residentBytes: rss,
        heapUsedBytes: heapUsed,
        heapTotalBytes: heapTotal,
        openFiles: await openFiles(),
        startedMs: performance.timeOrigin,
        loopActiveSeconds: active / 1000,
        loopIdleSeconds: idle / 1000,
        loopLagSeconds: lag / 1000,
      };
    },
  };
}

/** Excludes the handle that lists them. */
async function openFiles(): Promise<number | null> {
  return readdir('/proc/self/fd').then(
    ({ length }) => length - 1,
    () => null,
  );
}

const CHUNK = 64 * 1024;
const MAX_TAIL_BYTES = 4 * 1024 * 1024;

const NO_DIRECTORY =
  'Logs are unavailable here: LOG_DIR is not set. In containers, docker compose ps shows the names and docker compose logs --tail 100 NAME shows a log.';

/**
 * The *.log files below `directory`. A name is looked up in the listing and never used as a path.
 * Without a directory, every request is refused with `not_supported`.
 */
export function logDirectory(directory: string | undefined): LogFiles {
  async function names(): Promise<string[]> {
    if (directory === undefined) throw new AppError('not_supported', NO_DIRECTORY);
    const entries = await readdir(directory, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith('.log'))
      .map((entry) => entry.name.slice(0, -'.log'.length))
      .toSorted();
  }

  async function tail(name: string, lines: number): Promise<string[] | undefined> {
    const known = await names();
    if (directory === undefined || !known.includes(name)) return undefined;
    return lastLines(join(directory, `${name}.log`), lines);
  }

  return { names, tail };
}

async function lastLines(path: string, lines: number): Promise<string[]> {
  await using file = await open(path, 'r');
  let position = (await file.stat()).size;
  const chunks: Buffer[] = [];
  let breaks = 0;
  let bytes = 0;
  while (position > 0 && breaks <= lines && bytes < MAX_TAIL_BYTES) {
    const length = Math.min(CHUNK, position);
    position -= length;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    const chunk = buffer.subarray(0, bytesRead);
    chunks.unshift(chunk);
    bytes += bytesRead;
    for (const byte of chunk) if (byte === 0x0a) breaks++;
  }
  const all = Buffer.concat(chunks).toString('utf8').split('\n');
  if (all.at(-1) === '') all.pop();
  return all.slice(-lines);
}

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};
const DOCUMENT = /^docs\/([a-z0-9][\w-]*\.[a-z]+)$/;

/** Where assets are: each directory with its files, and the directory of the documents. */
export interface AssetPlaces {
  files: Readonly<Record<string, readonly string[]>>;
  docs: string;
}

/**
 * Assets from directories of the release. Files of pages are read once and cached. `docs/NAME` is
 * any file of the documents. Callers name only shipped files, but a path is refused all the same.
 */
export function assetDirectory({ files, docs }: AssetPlaces): Assets {
  const kept = new Map<string, Asset>();

  async function read(name: string): Promise<Asset | undefined> {
    const known = kept.get(name);
    if (known !== undefined) return known;
    const contentType = TYPES[extname(name)];
    if (contentType === undefined) return undefined;
    const [, document] = DOCUMENT.exec(name) ?? [];
    if (document !== undefined) return readDocument(join(docs, document), contentType);
    const [directory] = Object.entries(files).find(([, names]) => names.includes(name)) ?? [];
    if (directory === undefined) return undefined;
    const asset = { body: new Uint8Array(await readFile(join(directory, name))), contentType };
    kept.set(name, asset);
    return asset;
  }

  return { read };
}

async function readDocument(path: string, contentType: string): Promise<Asset | undefined> {
  try {
    return { body: new Uint8Array(await readFile(path)), contentType };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
