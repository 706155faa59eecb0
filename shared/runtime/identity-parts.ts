// The identity provider and its directory, where the settings place them; a part without a place says so when it is asked.

import { httpIdentity } from '../adapters/identity-http.ts';
import { ldapDirectory } from '../adapters/ldap-directory.ts';
import type { Settings } from '../config/settings.ts';
import { AppError } from '../domain/app-error.ts';
import { CORE_BASE, LDAP_SERVICE_ACCOUNT, webBaseBeside } from '../domain/directory-bases.ts';
import type { Directory } from '../ports/directory.ts';
import type { Exclusive } from '../ports/exclusive.ts';
import type { Identity } from '../ports/identity.ts';
import type { Log } from '../ports/log.ts';

export function identityOf({ IDENTITY_URL: url, IDENTITY_TOKEN: token }: Settings, exclusive: Exclusive): Identity {
  if (url === undefined) return unplacedIdentity('IDENTITY_URL');
  if (token === undefined) return unplacedIdentity('IDENTITY_TOKEN');
  return httpIdentity({ url, token, fetch, exclusive });
}

export function directoryOf(settings: Settings, ownCaFile: string | undefined, log: Log): Directory {
  const { LDAP_URL: url, LDAP_BIND_PASSWORD: password, LDAP_BASE_DN: coreBase = CORE_BASE } = settings;
  if (url === undefined) return unplacedDirectory('LDAP_URL');
  if (password === undefined) return unplacedDirectory('LDAP_BIND_PASSWORD');
  return ldapDirectory({
    url,
    coreBase,
    webBase: settings.LDAP_WEB_BASE_DN ?? webBaseBeside(coreBase),
    serviceAccount: { username: LDAP_SERVICE_ACCOUNT, password },
    tlsCaFile: ownCaFile,
    log,
  });
}

function unplacedDirectory(variable: string): Directory {
  const refuse = refusing(`The directory cannot be asked. Remedy: set ${variable}.`);
  return { signIn: refuse, find: refuse, probe: refuse };
}

function unplacedIdentity(variable: string): Identity {
  const refuse = refusing(`The identity provider cannot be asked. Remedy: set ${variable}.`);
  return {
    me: refuse,
    version: refuse,
    accounts: {
      list: refuse,
      get: refuse,
      named: refuse,
      create: refuse,
      change: refuse,
      changeAttributes: refuse,
      setPassword: refuse,
      delete: refuse,
    },
    groups: {
      list: refuse,
      get: refuse,
      named: refuse,
      create: refuse,
      delete: refuse,
      addMember: refuse,
      removeMember: refuse,
    },
    appPasswords: { create: refuse, list: refuse, get: refuse, reveal: refuse, delete: refuse },
  };
}

function refusing(message: string): () => Promise<never> {
  return () => Promise.reject(new AppError('unavailable', message));
}
