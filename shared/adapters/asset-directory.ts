// Assets from directories of the release. The caller names only files that it ships; a path is refused all the same.

import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Asset, Assets } from '../ports/assets.ts';

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/** Assets in these directories, read once and kept; `directories` says in which one each name lies. */
export function assetDirectory(directories: Readonly<Record<string, readonly string[]>>): Assets {
  const kept = new Map<string, Asset>();

  async function read(name: string): Promise<Asset | undefined> {
    const known = kept.get(name);
    if (known !== undefined) return known;
    const contentType = TYPES[extname(name)];
    const [directory] = Object.entries(directories).find(([, names]) => names.includes(name)) ?? [];
    if (contentType === undefined || directory === undefined) return undefined;
    const asset = { body: new Uint8Array(await readFile(join(directory, name))), contentType };
    kept.set(name, asset);
    return asset;
  }

  return { read };
}
