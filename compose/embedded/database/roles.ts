// Roles and databases of the embedded stack, as SQL for single-user mode (statements end with a semicolon and an empty
// line). `martiuser` owns the core's database as in a TAK Server release, but is no superuser here.

import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';

/** Passwords of the three owners and of the reader: printable ASCII, which PostgreSQL's normalisation leaves alone. */
export interface DatabasePasswords {
  core: string;
  app: string;
  reader: string;
  identity: string;
}

export const CORE_OWNER = 'martiuser';
export const CORE_DATABASE = 'cot';
/** May read everything in the core's database and see the statistics of the server; writes nothing. */
export const CORE_READER = 'holdfast_ro';
export const STATE_OWNER = 'holdfast';
export const STATE_DATABASE = 'holdfast';
/** Appends to the audit log and reads it; our own process takes it on for that. Nobody signs in with it. */
const AUDIT_ROLE = 'holdfast_audit';
/** Of the embedded identity provider; nobody else may open it. */
export const IDENTITY_OWNER = 'identity';
export const IDENTITY_DATABASE = 'identity';

export type DatabaseName = typeof CORE_DATABASE | typeof STATE_DATABASE | typeof IDENTITY_DATABASE;

/** The identity provider's came in a later release: an old cluster is given it when it starts. */
export const ADDED_LATER: readonly DatabaseName[] = [IDENTITY_DATABASE];

/** What PostgreSQL says to a database that an earlier start has made. */
export const ALREADY_MADE = /^.*ERROR: {2}database "(?:cot|holdfast|identity)" already exists$/gm;

/**
 * SQL that brings the roles of the databases whose passwords are given to the wanted state, and makes the databases of
 * `make`. Where one exists, its statement fails with ALREADY_MADE: there is no other way to make a database only when it is
 * missing.
 */
export function wantedState(
  passwords: Partial<DatabasePasswords>,
  make: readonly DatabaseName[] = [CORE_DATABASE, STATE_DATABASE, IDENTITY_DATABASE],
): string {
  const { core, app, reader, identity } = passwords;
  const owners: [DatabaseName, string, string | undefined][] = [
    [CORE_DATABASE, CORE_OWNER, core],
    [STATE_DATABASE, STATE_OWNER, app],
    [IDENTITY_DATABASE, IDENTITY_OWNER, identity],
  ];
  const wanted = owners.filter(([, , password]) => password !== undefined);
  const statements = [
    ...wanted.map(([, owner, password]) => role(owner, password ?? '')),
    ...(reader === undefined ? [] : [role(CORE_READER, reader)]),
    ...(app === undefined ? [] : [withoutLogin(AUDIT_ROLE)]),
    ...wanted.filter(([name]) => make.includes(name)).flatMap(([name, owner]) => database(name, owner)),
    ...(app === undefined ? [] : [`GRANT ${AUDIT_ROLE} TO ${STATE_OWNER}`]),
    ...(reader === undefined
      ? []
      : [
          `GRANT CONNECT ON DATABASE ${CORE_DATABASE} TO ${CORE_READER}`,
          `GRANT pg_monitor, pg_read_all_data TO ${CORE_READER}`,
        ]),
  ];
  return statements.map((statement) => `${statement};\n\n`).join('');
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
 * What PostgreSQL stores for an ASCII password (SCRAM-SHA-256, RFC 5803), so that the password itself is never in a
 * statement.
 */
export function scramVerifier(password: string, salt: Buffer, iterations = 4096): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  const storedKey = createHash('sha256').update(clientKey).digest('base64');
  const serverKey = createHmac('sha256', salted).update('Server Key').digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
