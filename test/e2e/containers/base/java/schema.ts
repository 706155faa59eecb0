// SchemaManager.jar: brings the database to the tables of the programs, with the coordinates of
// CoreConfig.xml unless they are given. Like the real one it makes the extensions itself, which
// only a superuser may when they are not there yet.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CORE_DATABASE_MIGRATED, CORE_MIGRATIONS } from '@holdfast/core';
import { migrate } from '@holdfast/kit/migrate';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { CoreConfig, databaseUrl, HOME, Refused } from './core-config.ts';
import type { JavaCall } from './java-call.ts';

const WITHIN_MS = 120_000;

export async function runSchemaManager({ arguments: words }: JavaCall): Promise<void> {
  const given = new Map<string, string>();
  let command: string | undefined;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    if (['-url', '-u', '-U', '-user'].includes(word))
      given.set(word === '-url' ? 'url' : 'user', words[(at += 1)] ?? '');
    // It asks the terminal for it, which is not there.
    else if (['-p', '-password'].includes(word)) throw new Refused(`${word} asks at a terminal: none is here`);
    else command = word;
  }
  if (command !== 'upgrade') throw new Refused(`Invalid command: ${String(command)}`);
  const { url, user, password } = new CoreConfig(configFile()).database();
  const full = databaseUrl(given.get('url') ?? url, given.get('user') ?? user, password);
  await withDatabase(new Secret(full), 'schema-manager', WITHIN_MS, async (sql) => {
    for (const extension of ['postgis', 'pgcrypto'])
      await sql.unsafe(`CREATE EXTENSION IF NOT EXISTS ${extension}`).catch((error: unknown) => {
        throw new Refused(`CREATE EXTENSION ${extension}: ${String(error)}`);
      });
    await migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED);
    // The history as a release keeps it: by the number that its jar brings (release-archive.ts).
    await sql.unsafe(`ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS version varchar(50),
      ADD COLUMN IF NOT EXISTS success boolean`);
    await sql.unsafe(`UPDATE schema_version SET version = '99', success = true
      WHERE number = (SELECT max(number) FROM schema_version)`);
  });
  process.stdout.write('Database updated with all current migrations.\n');
}

function configFile(): string {
  const places = [
    join(HOME, 'CoreConfig.xml'),
    join(process.cwd(), 'CoreConfig.xml'),
    join(HOME, 'CoreConfig.example.xml'),
  ];
  const found = places.find((place) => existsSync(place));
  if (found === undefined) throw new Refused(`There is no CoreConfig.xml in ${HOME} or here`);
  return found;
}
