// Names of accounts and groups that are bound by the specification.

/** The first administrator. */
export const WEBADMIN = 'webadmin';

/** The group that makes an administrator of the core; it is no channel and is never listed. */
export const ADMIN_ROLE_GROUP = 'core_ROLE_ADMIN';

/** The group of those who administer the identity provider itself; the provider calls it so. */
export const PROVIDER_ADMINS = 'authentik Admins';

/** What names of groups that are channels begin with; devices see them without it. */
export const CHANNEL_PREFIX = 'core_';

/** The same text for every spelling of a name that counts as one. */
export function nameKey(name: string): string {
  return name.normalize('NFKC').toLowerCase();
}
