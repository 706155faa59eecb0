// "Did you mean ...?": the known name that a mistyped one was most likely meant to be.

/**
 * Names of accounts and groups that are bound by the specification.
 * The first administrator.
 */
export const WEBADMIN = 'webadmin';

/** The group that makes an administrator of the core; it is no channel and is never listed. */
export const ADMIN_ROLE_GROUP = 'core_ROLE_ADMIN';

/** The group of those who administer the identity provider itself; the provider calls it so. */
export const PROVIDER_ADMINS = 'authentik Admins';

/** What names of groups that are channels begin with; devices see them without it. */
export const CHANNEL_PREFIX = 'core_';

/** The name of a channel as devices see it. */
export function deviceGroupName(channel: string): string {
  return channel.startsWith(CHANNEL_PREFIX) ? channel.slice(CHANNEL_PREFIX.length) : channel;
}

/** The management process at the core; its certificate is made by the core itself. */
export const API_ACCOUNT = 'svc_api';
/** Goes the way of a device every few minutes, to see that it is open. */
export const PROBE_ACCOUNT = 'svc_probe';
/** Whose throw-away certificates are revoked, to see that revoked ones are refused. */
export const CANARY_ACCOUNT = 'svc_canary';
/** The flow engine. */
export const FLOWS_ACCOUNT = 'svc_nodered';
/** Of each feed that is on, before its name. The flow engine gets its certificate. */
export const FEED_ACCOUNT_PREFIX = 'svc_feed_';
/** The attribute of an account that was made for a feed: true. */
export const FEED_ACCOUNT = 'holdfast_feed';

/** The channel of the probe and the canary, who are alone in it: never listed. */
export const PROBE_GROUP = 'core_holdfast_probe';

/**
 * The channel of accounts that are in no other one: they receive from it, and nobody sends into it.
 * A TAK Server release does not list the connections of an account without any group and does not
 * end them when its certificate is revoked; it also ignores the removal of the last group. Never
 * listed as a channel.
 */
export const UNGROUPED_GROUP = 'core_holdfast_no_group_READ';

/** The same text for every spelling of a name that counts as one. */
export function nameKey(name: string): string {
  return name.normalize('NFKC').toLowerCase();
}

/**
 * Accounts of programs: what they are called, what they may do, and which of them belong to the
 * stack.
 */
export const SERVICE_PREFIX = 'svc_';

/** `admin` may use the core's admin API, `data` only what every device may. */
export const SERVICE_KINDS = ['data', 'admin'] as const;
export type ServiceKind = (typeof SERVICE_KINDS)[number];

/** The attribute of an account that says its kind. */
export const KIND = 'holdfast_kind';

const NAME = /^svc_[A-Za-z0-9._-]{1,60}$/i;
const REST = /^[A-Za-z0-9._-]{1,60}$/;

/** True for what can be the name of a service account, in any case. */
export function isServiceAccountName(username: string): boolean {
  return NAME.test(username);
}

/** The whole name that somebody means, with or without the prefix, or why there is none. */
export function readServiceName(text: string): { username: string } | { fault: string } {
  const rest = /^svc_/i.test(text) ? text.slice(SERVICE_PREFIX.length) : text;
  if (REST.test(rest)) return { username: SERVICE_PREFIX + rest };
  return { fault: 'must be 1 to 60 letters, digits, dots, underscores or hyphens (svc_ not counted)' };
}

const OWN = [API_ACCOUNT, FLOWS_ACCOUNT, PROBE_ACCOUNT, CANARY_ACCOUNT];

/** True for those that the stack cannot do without. */
export function isOwnServiceAccount(username: string): boolean {
  return OWN.includes(nameKey(username));
}

/** The canary's certificates come and go by themselves: it is nobody's account to look at. */
export function isShownServiceAccount(username: string): boolean {
  return isServiceAccountName(username) && nameKey(username) !== CANARY_ACCOUNT;
}

/** What an account says of itself; who says nothing may do what every device may. */
export function kindOf({
  username,
  attributes,
}: {
  username: string;
  attributes: Readonly<Record<string, unknown>>;
}): ServiceKind {
  if (nameKey(username) === API_ACCOUNT) return 'admin';
  return attributes[KIND] === 'admin' ? 'admin' : 'data';
}

/** Names of accounts are the same in every case. */
export function isSameUser(a: string, b: string): boolean {
  return nameKey(a) === nameKey(b);
}
