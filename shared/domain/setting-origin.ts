// Where the value of a setting of PostgreSQL comes from, and the commands that take it back there.

/** As pg_settings and pg_db_role_setting tell. Names of roles and databases are quoted as SQL wants them. */
export interface SettingOrigin {
  /** `database` and `role` for ALTER DATABASE and ALTER ROLE; else the word of pg_settings, such as `command line`. */
  source: string;
  /** Of a configuration file; null when it is none, or when the role may not see it. */
  file: string | null;
  line: number | null;
  role: string | null;
  database: string | null;
}

const OF_ALTER_SYSTEM = 'postgresql.auto.conf';
const RELOAD = 'SELECT pg_reload_conf();';

/** In words, behind the value: `by ALTER SYSTEM`. */
export function originInWords(origin: SettingOrigin | undefined): string {
  if (origin === undefined) return 'from nobody knows where';
  const { source, file, line, role, database } = origin;
  if (source === 'role') return `by ALTER ROLE ${role ?? 'ALL'}${database === null ? '' : ` IN DATABASE ${database}`}`;
  if (source === 'database') return `by ALTER DATABASE ${database ?? ''}`;
  if (file?.endsWith(OF_ALTER_SYSTEM)) return 'by ALTER SYSTEM';
  if (source === 'configuration file') return `in ${file === null ? 'a configuration file' : `${file}, line ${line}`}`;
  if (source === 'command line') return 'by a start flag of the server';
  return source === 'default' ? "as PostgreSQL's own default" : `by ${source}`;
}

/**
 * The command that takes a value back. `wanted`: what is set where there is nothing to take back; `variable`: the setting of
 * Holdfast that becomes a start flag, if one does.
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
      ? `Remove the flag -c ${name}=... from the start of the server, and restart it.`
      : `Restart the server with the stack (scripts/stop.sh and scripts/start.sh, with containers docker compose up -d), so that ${variable} becomes its flag.`;
  return set;
}
