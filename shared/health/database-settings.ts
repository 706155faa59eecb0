// Settings of the core's database by which data is lost or writing stops: each with the command that takes it back.

import type { Fact } from '../domain/evaluate.ts';
import { originInWords, takenBack } from '../domain/setting-origin.ts';
import type { Status } from '../domain/status.ts';
import type { ServerFacts } from '../ports/server-facts.ts';

type Watched = keyof ServerFacts['settings'];

const DANGEROUS: readonly { name: Watched; safe: string; status: Status; because: string }[] = [
  { name: 'fsync', safe: 'on', status: 'critical', because: 'a power failure can destroy the whole database' },
  { name: 'full_page_writes', safe: 'on', status: 'warning', because: 'a power failure can destroy pages of tables' },
  {
    name: 'synchronous_commit',
    safe: 'on',
    status: 'note',
    because: 'the last writes before a crash can be lost, although they were confirmed',
  },
];

export function settingFindings(server: ServerFacts): Fact[] {
  const dangerous = DANGEROUS.filter(({ name }) => isOff(server.settings[name].value));
  return [
    ...readOnlyFindings(server),
    ...dangerous.map(({ name, safe, status, because }): Fact => {
      const { value, origin } = server.settings[name];
      const says = `${name} is ${value} (${originInWords(origin)}): ${because}`;
      return { kind: 'fact', status, says, remedy: takenBack(name, origin, { wanted: safe }) };
    }),
    ...restartFindings(server.pending_restart),
  ];
}

function isOff(value: string): boolean {
  return /^(off|false|no|0)$/i.test(value);
}

function isOn(value: string): boolean {
  return /^(on|true|yes|1)$/i.test(value);
}

function readOnlyFindings({ standby, settings }: ServerFacts): Fact[] {
  const name = 'default_transaction_read_only';
  const { value, origin } = settings[name];
  const facts: Fact[] = [];
  if (standby)
    facts.push({
      kind: 'fact',
      status: 'critical',
      says: 'the database takes no writes: it is a standby',
      remedy:
        'Let CORE_DATABASE_URL name the primary; or, if the primary is gone for good, make this one the primary, as a superuser: SELECT pg_promote();',
    });
  if (isOn(value))
    facts.push({
      kind: 'fact',
      status: 'critical',
      says: `the database takes no writes: ${name} is ${value} (${originInWords(origin)})`,
      // A session that began under the setting is under it, too.
      remedy: `SET ${name} = off; ${takenBack(name, origin, { wanted: 'off' })}`,
    });
  return facts;
}

function restartFindings(names: readonly string[]): Fact[] {
  if (names.length === 0) return [];
  const says = `${names.join(', ')} changed in the configuration and will count from the next start of the server`;
  const remedy =
    'Restart the server at a quiet time (scripts/stop.sh and scripts/start.sh, with containers docker compose restart core-database), or take the change back in the file that has it.';
  return [{ kind: 'fact', status: 'note', says, remedy }];
}
