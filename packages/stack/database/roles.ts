// Builds the SQL for the roles and databases of the embedded stack, for single-user mode (each
// statement ends with a semicolon and an empty line). `martiuser` owns the core's database as in a
// TAK Server release, but is no superuser.

import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

/**
 * Passwords of the three owners, the reader and the flow engine. Printable ASCII, which PostgreSQL
 * doesn't normalize.
 */
export interface DatabasePasswords {
  core: string;
  app: string;
  reader: string;
  identity: string;
  flows: string;
}

export const CORE_OWNER = 'martiuser';
export const CORE_DATABASE = 'cot';
/** May read everything in the core's database and the server statistics; may write nothing. */
export const CORE_READER = 'holdfast_ro';
/** Role of the flow engine, whose flows run arbitrary queries: it may only read FLOWS_TABLES. */
export const CORE_FLOWS = 'holdfast_flows';
/**
 * Tables of the core's database that flows may read, in a release and in the embedded core. Never
 * credentials or content: certificates, users, tokens, mission passwords, files.
 */
export const FLOWS_TABLES = [
  'cot_router',
  'cot_router_chat',
  'latestcot',
  'client_endpoint',
  'client_endpoint_event',
  'connection_event_type',
  'mission_keyword',
  'mission_uid',
  'mission_uid_keyword',
] as const;
/** Makes an expensive query of a flow fail instead of slowing down the core. */
const FLOWS_LIMITS = {
  default_transaction_read_only: 'on',
  statement_timeout: '30s',
  lock_timeout: '5s',
  idle_in_transaction_session_timeout: '30s',
  idle_session_timeout: '10min',
  temp_file_limit: '512MB',
  max_parallel_workers_per_gather: '0',
} as const;
const FLOWS_CONNECTIONS = 5;
export const STATE_OWNER = 'holdfast';
export const STATE_DATABASE = 'holdfast';
/** Appends to the audit log and reads it. Management assumes this role; it can't log in. */
const AUDIT_ROLE = 'holdfast_audit';
/** Role of the embedded identity provider, the only one that may open its database. */
export const IDENTITY_OWNER = 'identity';
export const IDENTITY_DATABASE = 'identity';
/** authentik may open hundreds. Of the hundred available connections, management needs the rest. */
const IDENTITY_CONNECTIONS = 70;

export type DatabaseName = typeof CORE_DATABASE | typeof STATE_DATABASE | typeof IDENTITY_DATABASE;

/** Added in a later release: a start creates the identity provider's database in old clusters. */
export const ADDED_LATER: readonly DatabaseName[] = [IDENTITY_DATABASE];

/** PostgreSQL's message for a database that an earlier start created. */
export const ALREADY_MADE = /^.*ERROR: {2}database "(?:cot|holdfast|identity)" already exists$/gm;

/**
 * SQL that creates or updates the roles whose passwords are given, and creates the databases of
 * `make`. The statement for an existing database fails with ALREADY_MADE: PostgreSQL can't create a
 * database only if it is missing.
 */
export function wantedState(
  passwords: Partial<DatabasePasswords>,
  make: readonly DatabaseName[] = [CORE_DATABASE, STATE_DATABASE, IDENTITY_DATABASE],
): string {
  const { core, app, reader, identity, flows } = passwords;
  const owners: [DatabaseName, string, string | undefined][] = [
    [CORE_DATABASE, CORE_OWNER, core],
    [STATE_DATABASE, STATE_OWNER, app],
    [IDENTITY_DATABASE, IDENTITY_OWNER, identity],
  ];
  const wanted = owners.filter(([, , password]) => password !== undefined);
  const statements = [
    ...wanted.map(([, owner, password]) => role(owner, password ?? '')),
    ...(reader === undefined ? [] : [role(CORE_READER, reader)]),
    ...(core === undefined ? [] : flowsRole(flows)),
    ...(identity === undefined ? [] : [`ALTER ROLE ${IDENTITY_OWNER} CONNECTION LIMIT ${IDENTITY_CONNECTIONS}`]),
    ...(app === undefined ? [] : [withoutLogin(AUDIT_ROLE)]),
    ...wanted.filter(([name]) => make.includes(name)).flatMap(([name, owner]) => database(name, owner)),
    ...(app === undefined ? [] : [`GRANT ${AUDIT_ROLE} TO ${STATE_OWNER}`]),
    ...(reader === undefined
      ? []
      : [
          `GRANT CONNECT ON DATABASE ${CORE_DATABASE} TO ${CORE_READER}`,
          `GRANT pg_monitor, pg_read_all_data TO ${CORE_READER}`,
        ]),
    ...(core === undefined ? [] : [`GRANT CONNECT ON DATABASE ${CORE_DATABASE} TO ${CORE_FLOWS}`]),
  ];
  return singleUser(statements);
}

/** Ends each statement as single-user mode needs it. */
export function singleUser(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};\n\n`).join('');
}

/**
 * Grants the flow engine's role FLOWS_TABLES in the database of this session, and revokes
 * everything else. Does nothing if the role is missing. Run as the owner of the tables or a
 * superuser, once they exist.
 */
export const FLOWS_GRANTS = `DO $grants$ DECLARE
  flows oid := to_regrole('${CORE_FLOWS}');
  wanted text[] := '{${FLOWS_TABLES.join(',')}}';
  relation record;
BEGIN
  IF flows IS NULL THEN RETURN; END IF;
  FOR relation IN
    SELECT oid::regclass AS name, relname = ANY (wanted) AS is_wanted,
      ARRAY(SELECT privilege_type FROM aclexplode(relacl) WHERE grantee = flows) AS has
    FROM pg_class WHERE relnamespace = to_regnamespace('public') AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  LOOP
    IF relation.is_wanted AND relation.has = '{SELECT}' THEN CONTINUE; END IF;
    IF relation.has <> '{}' THEN EXECUTE format('REVOKE ALL ON %s FROM ${CORE_FLOWS}', relation.name); END IF;
    IF relation.is_wanted THEN EXECUTE format('GRANT SELECT ON %s TO ${CORE_FLOWS}', relation.name); END IF;
  END LOOP;
END $grants$`;

/** Without a password, the role can't log in. */
function flowsRole(password: string | undefined): string[] {
  return [
    password === undefined
      ? `${withoutLogin(CORE_FLOWS)};\n\nALTER ROLE ${CORE_FLOWS} NOLOGIN PASSWORD NULL`
      : role(CORE_FLOWS, password),
    `ALTER ROLE ${CORE_FLOWS} CONNECTION LIMIT ${FLOWS_CONNECTIONS}`,
    ...Object.entries(FLOWS_LIMITS).map(([name, value]) => `ALTER ROLE ${CORE_FLOWS} SET ${name} = '${value}'`),
  ];
}

function role(name: string, password: string): string {
  const verifier = scramVerifier(password, randomBytes(16));
  return `DO $role$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${name}') THEN CREATE ROLE ${name}; END IF;
  ALTER ROLE ${name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '${verifier}';
END $role$`;
}

function withoutLogin(name: string): string {
  return `DO $role$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${name}') THEN CREATE ROLE ${name} NOLOGIN; END IF;
END $role$`;
}

function database(name: string, owner: string): string[] {
  return [`CREATE DATABASE ${name} OWNER ${owner}`, `REVOKE ALL ON DATABASE ${name} FROM PUBLIC`];
}

/**
 * PostgreSQL's stored form of an ASCII password (SCRAM-SHA-256, RFC 5803), which keeps passwords
 * out of statements.
 */
export function scramVerifier(password: string, salt: Buffer, iterations = 4096): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const storedKey = createHash('sha256').update(clientKey).digest('base64');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
