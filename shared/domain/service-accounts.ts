// Accounts of programs: what they are called, what they may do, and which of them belong to the stack.

import { API_ACCOUNT, CANARY_ACCOUNT, FLOWS_ACCOUNT, nameKey, PROBE_ACCOUNT } from './names.ts';

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
