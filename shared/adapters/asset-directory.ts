// Assets from a directory of the release. The caller names only files that it ships; a path is refused all the same.

import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Asset, Assets } from '../ports/assets.ts';

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/** Assets below `directory`, read once and kept. */
export function assetDirectory(directory: string): Assets {
  const kept = new Map<string, Asset>();

  async function read(name: string): Promise<Asset | undefined> {
    const known = kept.get(name);
    if (known !== undefined) return known;
    const contentType = TYPES[extname(name)];
    if (contentType === undefined || !/^[a-z0-9][a-z0-9.-]*$/.test(name)) return undefined;
    const asset = { body: new Uint8Array(await readFile(join(directory, name))), contentType };
    kept.set(name, asset);
    return asset;
  }

  return { read };
}
