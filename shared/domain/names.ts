// Names of accounts and groups that are bound by the specification.

/** The first administrator. */
export const WEBADMIN = 'webadmin';

/** The group that makes an administrator of the core; it is no channel and is never listed. */
export const ADMIN_ROLE_GROUP = 'core_ROLE_ADMIN';

/** The group of those who administer the identity provider itself; the provider calls it so. */
export const PROVIDER_ADMINS = 'authentik Admins';
