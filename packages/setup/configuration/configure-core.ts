// Prepares the files of a release before its core starts: configuration, users, certificates and
// retention files. Reports every problem at once, and then writes nothing.

import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  API_IDENTITY,
  EMPTY_USERS,
  readUsersDocument,
  type UsersDocument,
  UsersFault,
  withEntry,
} from '@holdfast/core/admin/users-document';
import { explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import type { Invocation } from '@holdfast/kit/command';
import { basesOf } from '@holdfast/kit/directory';
import { writeFileAtomically } from '@holdfast/kit/files';
import { BUNDLE_PASSWORD, certificateFiles } from '@holdfast/pki/certificate-files';
import { CORE_DATABASE, CORE_OWNER } from '@holdfast/stack/database/roles';
import { wantedRetention } from '../../../shared/health/wanted.ts';
import { retentionFiles } from '../../../shared/retention/files.ts';
import { environmentLayer, loadSettings } from '../../../shared/settings/load.ts';
import { describeProblem, type Problem } from '../../../shared/settings/setting.ts';
import type { SettingName, Settings } from '../../../shared/settings/table.ts';
import { poolSize } from '../release-files/schema.ts';
import { type CertificateNames, ensureReleaseAuthority, readReleaseAuthority } from './authority.ts';
import {
  ensureAuthorityStores,
  ensureReleaseApi,
  ensureReleaseServer,
  ensureRevocationList,
  makeCertificateDirectory,
} from './certificates.ts';
import { patchCoreConfig, type WantedCoreConfig } from './core-config.ts';
import { ConfigurationFault } from './document.ts';

/** The values that a release needs in its files. */
export interface WantedRelease {
  /** The volume of the core, mounted there at /opt/tak. */
  directory: string;
  database: WantedCoreConfig['database'];
  ldap: WantedCoreConfig['ldap'];
  names: CertificateNames;
  /** Names and addresses in the core's certificate. */
  hosts: readonly string[];
}

/** The changes, as sentences without a period; or the problems. */
export type Configured = { messages: string[] } | { problems: { message: string; remedy: string }[] };

const EXAMPLE = 'CoreConfig.example.xml';
const CONFIGS = ['conf/CoreConfig.xml', 'CoreConfig.xml'];
const USERS = 'UserAuthenticationFile.xml';
const MAX_BYTES = 16 * 1024 * 1024;
/** Readable for the core's group, which includes the core's database. */
const CONFIG_MODE = 0o640;
const MADE_WHEN_MISSING: Record<string, string> = {
  'conf/retention/mission-archiving-config.yml': `# Unit: days. "-" means never.
missionCronExpression: "-"
timeToArchiveAfterNoActivityDays: 365
removeFromArchiveAfterDays: 1065.0
archiveMissionByNoContentActivity: false
archiveMissionByNoSubscriptionActivity: false
`,
  'mission-archive/mission-store.yml': `# Archived missions; written by the core.
missionArchiveStoreEntries: []
`,
};
const SIGNATURE_OF_NEW_CA = 'SHA384withECDSA';

/** Running it again changes nothing. */
export async function configureRelease(wanted: WantedRelease, now: Date): Promise<Configured> {
  const { problems, found } = look(wanted);
  if (found === undefined) return { problems };
  const messages: string[] = [];
  const { directory, names } = wanted;
  const files = certificateFiles(directory);
  try {
    makeCertificateDirectory(files);
    const authority = await ensureReleaseAuthority(files, names, now);
    const deps = { files, authority, names, now, say: (sentence: string) => messages.push(sentence) };
    await ensureAuthorityStores(deps);
    await ensureReleaseServer(deps, wanted.hosts);
    const fingerprint = await ensureReleaseApi(deps);
    await ensureRevocationList(deps);
    grant(join(directory, USERS), found.users, fingerprint);
    for (const [name, text] of Object.entries(MADE_WHEN_MISSING)) makeWhenMissing(join(directory, name), text);
    copyWhenMissing(directory, 'TAKIgniteConfig.example.xml', 'TAKIgniteConfig.xml');
    // Last: if the core finds this file, everything it names exists.
    for (const config of found.configs) messages.push(...write(config, wanted, authority.javaAlgorithm));
  } catch (error) {
    throw explainFileError(error, directory);
  }
  return { messages };
}

interface FoundConfig {
  path: string;
  /** The current text, or the example that it is created from. */
  text: string;
  fresh: boolean;
}

interface Found {
  configs: FoundConfig[];
  users: UsersDocument;
}

function look(wanted: WantedRelease): { problems: { message: string; remedy: string }[]; found?: Found } {
  const { directory } = wanted;
  const problems: { message: string; remedy: string }[] = [];
  const attempt = <T>(then: () => T, path: string, remedy: string): T | undefined => {
    try {
      return then();
    } catch (error) {
      problems.push(problemOf(error, path, remedy));
      return undefined;
    }
  };
  const configs = attempt(() => configsIn(directory), directory, 'run ./scripts/setup.sh with the archive again');
  for (const { path, text, fresh } of configs ?? []) {
    const remedy = fresh
      ? 'run ./scripts/setup.sh with the archive again'
      : `fix the file, or move it: it is then recreated from ${EXAMPLE}`;
    attempt(() => patchCoreConfig(text, wantedConfig(wanted, SIGNATURE_OF_NEW_CA), { fresh }), path, remedy);
  }
  const users = join(directory, USERS);
  const document = attempt(
    () => readUsersDocument(existsSync(users) ? readBounded(users) : EMPTY_USERS),
    users,
    'fix the file, or move it: it is then recreated with only svc_api in it',
  );
  attempt(() => readReleaseAuthority(certificateFiles(directory)), certificateFiles(directory).ca, 'see above');
  attempt(() => refuseMisread(wanted.ldap.url), directory, 'see above');
  if (problems.length > 0 || configs === undefined || document === undefined) return { problems };
  return { problems, found: { configs, users: document } };
}

/**
 * The core uses TLS if `ldaps` is anywhere in the address, even in a host name. Then every sign-in
 * would fail.
 */
function refuseMisread(url: string): void {
  if (!/^ldap:.*ldaps/i.test(url)) return;
  throw new StackError(
    `The core would use TLS for ${url}, because the address contains "ldaps".`,
    'set LDAP_URL to another name of that host, its IP address, or ldaps:// with the TLS port',
  );
}

function problemOf(error: unknown, path: string, remedy: string): { message: string; remedy: string } {
  const explained = explainFileError(error, path);
  if (explained instanceof StackError) return { message: explained.message, remedy: explained.remedy };
  if (explained instanceof ConfigurationFault || explained instanceof UsersFault)
    return { message: `${path}: ${explained.message}.`, remedy };
  return { message: `Couldn't use ${path}: ${messageOf(error)}.`, remedy };
}

/** All existing ones: the core reads conf first, its database tools read only the other. */
function configsIn(directory: string): FoundConfig[] {
  const there = CONFIGS.map((name) => join(directory, name)).filter((path) => existsSync(path));
  if (there.length > 0) return there.map((path) => ({ path, text: readBounded(path), fresh: false }));
  const example = join(directory, EXAMPLE);
  if (!existsSync(example))
    throw new StackError(
      `No release in ${directory}: it has neither CoreConfig.xml nor ${EXAMPLE}.`,
      'run ./scripts/setup.sh with the archive, and read: docker compose logs release',
    );
  return [{ path: join(directory, 'CoreConfig.xml'), text: readBounded(example), fresh: true }];
}

function readBounded(path: string): string {
  if (statSync(path).size > MAX_BYTES) throw new ConfigurationFault(`it is larger than ${MAX_BYTES} bytes`);
  return readFileSync(path, 'utf8');
}

function wantedConfig({ database, ldap, names }: WantedRelease, signatureAlgorithm: string): WantedCoreConfig {
  const { organization, unit } = names;
  return { database, ldap, organization, unit, signatureAlgorithm, bundlePassword: BUNDLE_PASSWORD };
}

function write({ path, text, fresh }: FoundConfig, wanted: WantedRelease, signatureAlgorithm: string): string[] {
  const patched = patchCoreConfig(text, wantedConfig(wanted, signatureAlgorithm), { fresh });
  if (patched.text === text && !fresh) return [];
  const before = `${path}.before-holdfast`;
  // The copy may contain passwords that are in use elsewhere: only for its owner.
  if (!fresh && !existsSync(before)) writeFileAtomically(before, text);
  writeFileAtomically(path, patched.text, CONFIG_MODE);
  return [
    fresh ? `Created ${path} from ${EXAMPLE}` : `Changed ${path}`,
    ...patched.messages.map((each) => `  ${each}`),
  ];
}

function grant(path: string, document: UsersDocument, fingerprint: string): void {
  const isGranted = document.entries.some(
    (entry) => entry.identifier === API_IDENTITY && entry.fingerprint === fingerprint && entry.role === 'ROLE_ADMIN',
  );
  if (isGranted) return;
  writeFileAtomically(path, withEntry(document, { identifier: API_IDENTITY, fingerprint, role: 'ROLE_ADMIN' }));
}

function makeWhenMissing(path: string, text: string): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  writeFileAtomically(path, text, 0o640);
}

function copyWhenMissing(directory: string, from: string, to: string): void {
  const [source, target] = [join(directory, from), join(directory, to)];
  if (existsSync(source)) makeWhenMissing(target, readFileSync(source, 'utf8'));
}

/** Host and port of the core's database, by the name that every release uses. */
const DATABASE_PLACE = 'tak-database:5432';
const NEEDED = [
  'CORE_DATA_DIR',
  'SERVER_ADDRESS',
  'CORE_DB_PASSWORD',
  'LDAP_URL',
  'LDAP_BIND_PASSWORD',
] as const satisfies readonly SettingName[];
const CORE_NAMES = ['takserver', 'core', 'localhost', '127.0.0.1'];

/** The program of the role `configuration`; resolves with its exit code. */
export async function configureCore({ environment }: Pick<Invocation, 'environment'>): Promise<number> {
  const { settings, problems: found } = loadSettings([environmentLayer(environment)], 'container');
  const problems = [...found.filter(({ name }) => name in environment), ...missing(settings, environment)];
  if (problems.length > 0) return refuse(problems.map(describeProblem));
  const wanted = wantedRelease(settings, environment);
  const configured = await configureRelease(wanted, new Date());
  if ('problems' in configured)
    return refuse(configured.problems.map(({ message, remedy }) => `${message}\n    Remedy: ${remedy}`));
  const { messages } = await retentionFiles(wanted.directory).sync(wantedRetention(settings));
  for (const sentence of [...configured.messages, ...messages]) say(`${sentence}.`);
  if (configured.messages.length + messages.length === 0) say(`The core files in ${wanted.directory} are up to date.`);
  return 0;
}

function wantedRelease(settings: Settings, environment: NodeJS.ProcessEnv): WantedRelease {
  const place = environment['HOLDFAST_CORE_DATABASE']?.trim() || DATABASE_PLACE;
  const { SERVER_ADDRESS: address = 'localhost', PUBLIC_ADDRESSES: addresses = [] } = settings;
  return {
    directory: settings.CORE_DATA_DIR ?? '',
    database: {
      url: `jdbc:postgresql://${place}/${CORE_DATABASE}`,
      user: CORE_OWNER,
      password: settings.CORE_DB_PASSWORD?.reveal() ?? '',
      connections: poolSize(settings.CORE_DATABASE_MEMORY),
    },
    ldap: {
      url: settings.LDAP_URL ?? '',
      base: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN).core,
      password: settings.LDAP_BIND_PASSWORD?.reveal() ?? '',
    },
    names: {
      country: settings.CERTIFICATE_COUNTRY ?? '',
      state: settings.CERTIFICATE_STATE ?? '',
      city: settings.CERTIFICATE_CITY ?? '',
      organization: settings.CERTIFICATE_ORGANIZATION ?? '',
      unit: settings.CERTIFICATE_UNIT ?? '',
    },
    hosts: [...new Set([address, ...CORE_NAMES, ...addresses])],
  };
}

function missing(settings: Settings, environment: NodeJS.ProcessEnv): Problem[] {
  return NEEDED.filter((name) => settings[name] === undefined && !(name in environment)).map((name) => ({
    name,
    value: undefined,
    message: 'must be set',
    remedy: `run ./scripts/setup.sh, which writes it to .env, or set ${name} in .env yourself`,
  }));
}

function refuse(problems: readonly string[]): number {
  say("Couldn't configure the core. Nothing was changed:");
  for (const problem of problems) say(`  ${problem}`);
  return 1;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
