// The directory, where the settings place it; without a place it says so when it is asked. Node only: workerd has no TLS of
// that kind, and asks its host.

import { ldapDirectory } from '../adapters/ldap-directory.ts';
import type { Settings } from '../config/settings.ts';
import { AppError } from '../domain/app-error.ts';
import { basesOf, LDAP_SERVICE_ACCOUNT } from '../domain/directory-bases.ts';
import type { Directory } from '../ports/directory.ts';
import type { Log } from '../ports/log.ts';

export function directoryOf(settings: Settings, ownCaFile: string | undefined, log: Log): Directory {
  const { LDAP_URL: url, LDAP_BIND_PASSWORD: password } = settings;
  if (url === undefined) return unplacedDirectory('LDAP_URL');
  if (password === undefined) return unplacedDirectory('LDAP_BIND_PASSWORD');
  const { core, web } = basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN);
  return ldapDirectory({
    url,
    coreBase: core,
    webBase: web,
    serviceAccount: { username: LDAP_SERVICE_ACCOUNT, password },
    tlsCaFile: ownCaFile,
    log,
  });
}

function unplacedDirectory(variable: string): Directory {
  const text = `The directory cannot be asked. Remedy: set ${variable}.`;
  const refuse = (): Promise<never> => Promise.reject(new AppError('unavailable', text));
  return { signIn: refuse, find: refuse, probe: refuse };
}
