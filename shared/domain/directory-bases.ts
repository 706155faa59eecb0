// The two bases of the directory: the core's, where app passwords count, and the web one, where they do not.

import { formatDistinguishedName, parseDistinguishedName, partsAbove } from './distinguished-name.ts';

export interface DirectoryBases {
  core: string;
  web: string;
}

/** Where the directory of the stack begins unless LDAP_BASE_DN says otherwise. */
export const CORE_BASE = 'DC=core,DC=holdfast';
/** The account that reads the whole directory. */
export const LDAP_SERVICE_ACCOUNT = 'adm_ldapservice';

/** The web base beside a core base: its first part is called `web`. */
export function webBaseBeside(core: string): string {
  const [first = [], ...rest] = parseDistinguishedName(core) ?? [];
  return formatDistinguishedName([first.slice(0, 1).map(({ type }) => ({ type, value: 'web' })), ...rest]);
}

/** The bases as the settings LDAP_BASE_DN and LDAP_WEB_BASE_DN give them, either of which may be unset. */
export function basesOf(core: string = CORE_BASE, web: string = webBaseBeside(core)): DirectoryBases {
  return { core, web };
}

/** True when one of the two lies in the other, or they are the same: a name could then be read in both ways. */
export function basesOverlap({ core, web }: DirectoryBases): boolean {
  const [one, other] = [parseDistinguishedName(core) ?? [], parseDistinguishedName(web) ?? []];
  return partsAbove(one, other) !== undefined || partsAbove(other, one) !== undefined;
}
