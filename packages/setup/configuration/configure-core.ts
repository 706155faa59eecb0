// Prepares the files of a release before its core starts: configuration, users, certificates, and then the
// retention files. Or the reasons why it cannot be; nothing is written then.

import type { Invocation } from '@holdfast/kit/command';
import { basesOf } from '@holdfast/kit/directory';
import { CORE_DATABASE, CORE_OWNER } from '@holdfast/stack/database/roles';
import { wantedRetention } from '../../../shared/health/wanted.ts';
import { retentionFiles } from '../../../shared/retention/files.ts';
import { environmentLayer, loadSettings } from '../../../shared/settings/load.ts';
import { describeProblem, type Problem } from '../../../shared/settings/setting.ts';
import type { SettingName, Settings } from '../../../shared/settings/table.ts';
import { poolSize } from '../release-files/schema.ts';
import { configureRelease, type WantedRelease } from './configure.ts';

/** Where a core finds its database, by the name that every release knows. */
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
  const { said } = await retentionFiles(wanted.directory).sync(wantedRetention(settings));
  for (const sentence of [...configured.said, ...said]) say(`${sentence}.`);
  if (configured.said.length + said.length === 0)
    say(`The files of the core in ${wanted.directory} are as they should be.`);
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
    remedy: `run ./scripts/setup.sh, which writes it into .env, or set ${name} there yourself`,
  }));
}

function refuse(problems: readonly string[]): number {
  say('The files of the core were not touched:');
  for (const problem of problems) say(`  ${problem}`);
  return 1;
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
