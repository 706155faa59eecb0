// Reads PostgreSQL settings as they apply to the owner of the database, and their source. A
// connection does not see ALTER DATABASE and ALTER ROLE commands that came after it, and no role
// sees those of another.

import type { Sql } from '@holdfast/kit/postgres';
import type { ServerSetting, SettingOrigin } from './port.ts';

export interface OverridesRow {
  /** JSON of the settings per role, the more specific one last; null when there is none. */
  overrides: string | null;
}

interface Override {
  settings: string[];
  role: string | null;
  database: string | null;
  of_database: boolean;
}

/**
 * A column `overrides`: of the owner of this database, which is the core's role, and of everyone.
 */
export const overrides = (sql: Sql) => sql`
  (SELECT json_agg(json_build_object('settings', s.setconfig, 'role', quote_ident(r.rolname),
      'database', CASE WHEN s.setdatabase <> 0 THEN quote_ident(d.datname) END,
      'of_database', s.setrole = 0 AND s.setdatabase <> 0) ORDER BY s.setrole, s.setdatabase)
    FROM pg_database AS d, pg_db_role_setting AS s LEFT JOIN pg_roles AS r ON r.oid = s.setrole
    WHERE d.datname = current_database() AND s.setrole IN (0, d.datdba) AND s.setdatabase IN (0, d.oid)
  )::text AS overrides`;

/** By the name of the setting. */
export function overriddenBy({ overrides: text }: OverridesRow): Record<string, ServerSetting> {
  const all = text === null ? [] : (JSON.parse(text) as Override[]);
  return Object.fromEntries(all.flatMap((each) => each.settings.map((setting) => overriding(setting, each))));
}

/** `name=value` */
export function splitAtEquals(setting: string): [string, string] {
  const place = setting.indexOf('=');
  return [setting.slice(0, place), setting.slice(place + 1)];
}

function overriding(setting: string, { role, database, of_database }: Override): [string, ServerSetting] {
  const [name, value] = splitAtEquals(setting);
  const source = of_database ? 'database' : 'role';
  const origin = { source, file: null, line: null, role, database };
  return [name, { value, origin }];
}

export interface InheritableRow {
  inheritable: string;
}

/**
 * A column `inheritable`: settings from ALTER DATABASE and ALTER ROLE for the current role. A
 * connection has those from when it was opened.
 */
export const inheritable = (sql: Sql) => sql`
  (SELECT coalesce(json_agg(s.setconfig ORDER BY s.setrole, s.setdatabase), '[]')
    FROM pg_db_role_setting AS s
    WHERE s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
      AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  )::text AS inheritable`;

/** The values on a connection, and those it could have inherited by then. */
export interface Current<T> extends InheritableRow {
  found: T;
}

interface SettingRow extends OverridesRow, InheritableRow {
  name: string;
  /** Null when the role may not see it. */
  value: string | null;
  source: string;
  file: string | null;
  line: number | null;
  role: string;
  database: string;
  pending: boolean;
}

/** These, and every one that waits for a restart. */
export async function readServerSettings(
  sql: Sql,
  names: readonly string[],
): Promise<Current<{ settings: Record<string, ServerSetting>; pending: string[] }>> {
  const rows = await sql<SettingRow[]>`
    SELECT s.name, s.source, s.sourcefile AS file, s.sourceline AS line, s.pending_restart AS pending,
      quote_ident(session_user) AS role, quote_ident(current_database()) AS database,
      CASE WHEN s.name = ANY(${namesOf(names)}::text[]) THEN current_setting(s.name) END AS value, ${overrides(sql)}, ${inheritable(sql)}
    FROM pg_settings s WHERE s.name = ANY(${namesOf(names)}::text[]) OR s.pending_restart
    ORDER BY s.name`;
  const overridden = rows[0] === undefined ? {} : overriddenBy(rows[0]);
  const wanted = rows.filter(({ name }) => names.includes(name));
  const settings = Object.fromEntries(wanted.map((row) => [row.name, overridden[row.name] ?? settingOf(row)]));
  const pending = rows.filter((row) => row.pending).map(({ name }) => name);
  return { found: { settings, pending }, inheritable: rows[0]?.inheritable ?? '[]' };
}

/** The names are our own constants and need no quotes. */
function namesOf(names: readonly string[]): string {
  return `{${names.join()}}`;
}

function settingOf({ value, source, file, line, role, database }: SettingRow): ServerSetting {
  return { value: value ?? '', origin: { ...ownOverride(source, role, database), file, line } };
}

/** Set for the current role, not for the owner. */
function ownOverride(
  source: string,
  role: string,
  database: string,
): Pick<SettingOrigin, 'source' | 'role' | 'database'> {
  if (source === 'user') return { source: 'role', role, database: null };
  if (source === 'database user') return { source: 'role', role, database };
  return { source, role: null, database: null };
}

const OF_ALTER_SYSTEM = 'postgresql.auto.conf';
const RELOAD = 'SELECT pg_reload_conf();';

/** A phrase after the value: `by ALTER SYSTEM`. */
export function formatOrigin(origin: SettingOrigin | undefined): string {
  if (origin === undefined) return 'from an unknown source';
  const { source, file, line, role, database } = origin;
  if (source === 'role') return `by ALTER ROLE ${role ?? 'ALL'}${database === null ? '' : ` IN DATABASE ${database}`}`;
  if (source === 'database') return `by ALTER DATABASE ${database ?? ''}`;
  if (file?.endsWith(OF_ALTER_SYSTEM)) return 'by ALTER SYSTEM';
  if (source === 'configuration file') return `in ${file === null ? 'a configuration file' : `${file}, line ${line}`}`;
  if (source === 'command line') return 'by a start flag of the server';
  return source === 'default' ? "as PostgreSQL's own default" : `by ${source}`;
}

/**
 * The command that resets a value. `wanted`: the value to set when there is nothing to reset;
 * `variable`: the Holdfast setting that becomes a start flag, if one does.
 */
export function takenBack(
  name: string,
  origin: SettingOrigin | undefined,
  { wanted, variable }: { wanted: string; variable?: string | undefined },
): string {
  const set = `ALTER SYSTEM SET ${name} = '${wanted}'; ${RELOAD}`;
  if (origin === undefined) return set;
  const { source, file, line, role, database } = origin;
  if (source === 'role')
    return `ALTER ROLE ${role ?? 'ALL'}${database === null ? '' : ` IN DATABASE ${database}`} RESET ${name};`;
  if (source === 'database') return `ALTER DATABASE ${database ?? ''} RESET ${name};`;
  if (file?.endsWith(OF_ALTER_SYSTEM)) return `ALTER SYSTEM RESET ${name}; ${RELOAD}`;
  if (source === 'configuration file')
    return file === null
      ? `ALTER SYSTEM RESET ${name}; ${RELOAD} or, if it stays, remove it from postgresql.conf and reload again.`
      : `Remove ${name} from ${file}, line ${line}, then ${RELOAD}`;
  if (source === 'command line')
    return variable === undefined
      ? `Remove the flag -c ${name}=... from the server's start command, and restart the server.`
      : `Restart the server with the stack (scripts/stop.sh and scripts/start.sh, with containers docker compose up -d), so that ${variable} becomes its flag.`;
  return set;
}
