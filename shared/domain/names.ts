// Names of accounts and groups that are bound by the specification.

/** The first administrator. */
export const WEBADMIN = 'webadmin';

/** The group that makes an administrator of the core; it is no channel and is never listed. */
export const ADMIN_ROLE_GROUP = 'core_ROLE_ADMIN';

/** The group of those who administer the identity provider itself; the provider calls it so. */
export const PROVIDER_ADMINS = 'authentik Admins';

/** What names of groups that are channels begin with; devices see them without it. */
export const CHANNEL_PREFIX = 'core_';

/** The management process at the core; its certificate is made by the core itself. */
export const API_ACCOUNT = 'svc_api';
/** Goes the way of a device every few minutes, to see that it is open. */
export const PROBE_ACCOUNT = 'svc_probe';
/** Whose throw-away certificates are revoked, to see that revoked ones are refused. */
export const CANARY_ACCOUNT = 'svc_canary';
/** The flow engine. */
export const FLOWS_ACCOUNT = 'svc_nodered';

/** The channel of the probe and the canary, who are alone in it: never listed. */
export const PROBE_GROUP = 'core_holdfast_probe';

/**
 * The channel of accounts that are in no other one: they receive from it, and nobody sends into it. A TAK Server release does
 * not list the connections of an account without any group and does not end them when its certificate is revoked; it also
 * ignores the removal of the last group. Never listed as a channel.
 */
export const UNGROUPED_GROUP = 'core_holdfast_no_group_READ';

/** The same text for every spelling of a name that counts as one. */
export function nameKey(name: string): string {
  return name.normalize('NFKC').toLowerCase();
}
