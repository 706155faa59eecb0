// Programs of a Debian release that need not be this machine's: unpacked, never installed.

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MIRROR, must } from './engine.ts';

const RETRIES = 5;

/**
 * PostgreSQL's package would make a cluster of its own; Java's wants a place for its manuals,
 * though none is unpacked.
 */
const BEFORE =
  'mkdir -p "$1/etc/postgresql-common" "$1/usr/share/man/man1" && echo create_main_cluster=false >"$1/etc/postgresql-common/createcluster.conf"';

/** A Debian with nothing in it but what the package system needs and `packages`, as an archive. */
export async function debianRoot(release: string, archive: string, packages: string[] = []): Promise<void> {
  const small = [
    '--variant=minbase',
    '--mode=root',
    ...['doc', 'man', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    '--dpkgopt=force-unsafe-io',
    `--include=${['tzdata', ...packages].join()}`,
    `--essential-hook=${BEFORE}`,
    '--aptopt=APT::Install-Recommends "false"',
    `--aptopt=Acquire::Retries "${String(RETRIES)}"`,
  ];
  await must('mmdebstrap', ['--quiet', ...small, release, archive, MIRROR]);
}

/** Unpacks packages of a suite below `root`. `apt` keeps what it knows of the suite in `state`. */
export async function unpackPackages(state: string, suite: string, packages: string[], root: string): Promise<void> {
  const at = (name: string): string => join(state, name);
  for (const name of ['lists/partial', 'cache/archives/partial', 'packages']) mkdirSync(at(name), { recursive: true });
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(at('sources.list'), `deb [signed-by=${keyring}] ${MIRROR} ${suite} main\n`);
  const settings = [
    `Dir::Etc::SourceList=${at('sources.list')}`,
    'Dir::Etc::SourceParts=/dev/null',
    `Dir::State::Lists=${at('lists')}`,
    `Dir::Cache=${at('cache')}`,
    'APT::Sandbox::User=root',
    'Acquire::Languages=none',
    `Acquire::Retries=${String(RETRIES)}`,
  ].flatMap((setting) => ['-o', setting]);
  await must('apt-get', [...settings, 'update', '-qq']);
  await must('apt-get', [...settings, 'download', '-qq', ...packages], { cwd: at('packages') });
  for (const file of readdirSync(at('packages'))) await must('dpkg-deb', ['-x', join(at('packages'), file), root]);
}
