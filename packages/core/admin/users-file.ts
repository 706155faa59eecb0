// Keeps the entries of UserAuthenticationFile.xml (rights of certificates) current. Rereads a
// changed file. A broken file changes nothing.

import { readFileSync, statSync } from 'node:fs';
import { codeOf, explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import { writeFileAtomically } from '@holdfast/kit/files';
import type { Log } from '@holdfast/kit/log';
import type { CoreRole, UsersFile } from '../model/parts.ts';
import {
  EMPTY_USERS,
  readUsersDocument,
  type UsersDocument,
  UsersFault,
  withEntry,
  withoutEntry,
} from './users-document.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const REMEDY = 'fix the file, or restore a copy. The core rereads it by itself';
const REMEDY_AT_START = 'fix the file, restore a copy, or remove it (a new one knows only svc_api), then start again';

const MISSING = 'missing';

interface Rights {
  byFingerprint: Map<string, CoreRole>;
  byName: Map<string, CoreRole>;
}

/**
 * The file is made when it is missing. Throws a StackError when it cannot be read at the start, or
 * for a `grant`.
 */
export function usersFile(path: string, log: Log): UsersFile {
  if (stampOf(path) === MISSING) writeFileAtomically(path, EMPTY_USERS);
  let stamp: string | undefined = stampOf(path);
  let rights = rightsOf(readOrRefuse(path, REMEDY_AT_START), log);
  let reported: string | undefined;

  /**
   * Rule `brokenUsersFile`: what was read last stays in force until the file can be read again;
   * each fault is told once. What is wrong in the file is not read again before it changes; what
   * could not be read at all is tried again.
   */
  function refresh(): void {
    try {
      const found = stampOf(path);
      if (found === stamp) return;
      stamp = found;
      if (found === MISSING) throw new UsersFault('it is missing');
      rights = rightsOf(readDocument(path), log);
      reported = undefined;
      log.info('core.users_file_read', { path, entries: rights.byFingerprint.size + rights.byName.size });
    } catch (error) {
      if (!(error instanceof UsersFault)) stamp = undefined;
      const fault = messageOf(error);
      if (fault !== reported)
        log.error('core.users_file_broken', { path, fault, in_force: 'the entries read before', remedy: REMEDY });
      reported = fault;
    }
  }

  return {
    roleOf({ hash, commonName }) {
      refresh();
      return rights.byFingerprint.get(hash.toUpperCase()) ?? rights.byName.get(commonName) ?? 'ROLE_ANONYMOUS';
    },

    grant({ identifier, fingerprint, role }) {
      const written = withEntry(readOrRefuse(path), { identifier, fingerprint: fingerprint.toUpperCase(), role });
      rightsOf(checked(written, path), log);
      writeFileAtomically(path, written);
      refresh();
    },

    cancel(identifier) {
      const written = withoutEntry(readOrRefuse(path), identifier);
      if (written === undefined) return;
      writeFileAtomically(path, written);
      refresh();
    },
  };
}

/**
 * Changes whenever the file does: also when it is replaced within the same moment by one of the
 * same size.
 */
function stampOf(path: string): string {
  try {
    const { mtimeNs, ctimeNs, size, ino } = statSync(path, { bigint: true });
    return [mtimeNs, ctimeNs, size, ino].join();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return MISSING;
    throw explainFileError(error, path);
  }
}

function readDocument(path: string): UsersDocument {
  if (statSync(path).size > MAX_BYTES) throw new UsersFault(`it is larger than ${MAX_BYTES} bytes`);
  return readUsersDocument(readFileSync(path, 'utf8'));
}

function readOrRefuse(path: string, remedy = REMEDY): UsersDocument {
  try {
    return readDocument(path);
  } catch (error) {
    if (error instanceof UsersFault) throw new StackError(`${path}: ${error.message}.`, remedy, error);
    throw explainFileError(error, path);
  }
}

/** A value that cannot be written as XML must not reach the file. */
function checked(written: string, path: string): UsersDocument {
  try {
    return readUsersDocument(written);
  } catch (error) {
    throw new StackError(`Couldn't add the entry to ${path}.`, 'use only letters, digits and . _ - in the name', error);
  }
}

/**
 * An entry with a fingerprint counts by it alone: by its name it would open for every certificate
 * of that name. Of entries of the same fingerprint, or of the same name without one, the last one
 * counts.
 */
function rightsOf({ entries }: UsersDocument, log: Log): Rights {
  const byFingerprint = new Map<string, CoreRole>();
  const byName = new Map<string, CoreRole>();
  const names = new Set<string>();
  for (const { identifier, fingerprint, role } of entries) {
    const isKnown = names.has(identifier) || (fingerprint !== undefined && byFingerprint.has(fingerprint));
    if (isKnown) log.warn('core.users_file_duplicate', { identifier, role });
    names.add(identifier);
    if (fingerprint === undefined) byName.set(identifier, role);
    else byFingerprint.set(fingerprint, role);
  }
  return { byFingerprint, byName };
}
