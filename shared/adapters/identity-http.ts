// The identity provider over its HTTP API, version 3. Runs on Node and in workerd.

import type { Exclusive } from '../ports/exclusive.ts';
import type { Identity } from '../ports/identity.ts';
import { identityAccounts } from './identity-accounts.ts';
import { session, versions } from './identity-answers.ts';
import { identityAppPasswords } from './identity-app-passwords.ts';
import { identityGroups } from './identity-groups.ts';
import { identityProvider, type ProviderOptions } from './identity-request.ts';

export interface HttpIdentityOptions extends ProviderOptions {
  /** Keeps writers of one account, and makers of one name, apart. */
  exclusive: Exclusive;
  /** Tells which app passwords live long; default: the system's clock. */
  now?: () => Date;
}

/**
 * `url` is where the provider is (`http://127.0.0.1:9000`, `https://host/prefix`). One request takes at most 5 s and
 * 8 MB, and a method a few of them; lists end after 10 000 entries or 20 s.
 */
export function httpIdentity({ exclusive, now = () => new Date(), ...options }: HttpIdentityOptions): Identity {
  const provider = identityProvider(options);
  const { accounts, writeAttributes } = identityAccounts(provider, exclusive);

  async function me(): Promise<{ username: string; isSuperuser: boolean }> {
    const outcome = await provider.exchange('GET', 'core/users/me', session);
    if (!('done' in outcome)) throw provider.nonsense('does not know the account of our token');
    const { username, is_superuser: isSuperuser } = outcome.done.user;
    return { username, isSuperuser };
  }

  async function version(): Promise<string> {
    const outcome = await provider.exchange('GET', 'admin/version', versions);
    if (!('done' in outcome)) throw provider.nonsense('does not tell its version');
    return outcome.done.version_current;
  }

  return {
    me,
    version,
    accounts,
    groups: identityGroups(provider, exclusive),
    appPasswords: identityAppPasswords(provider, writeAttributes, now),
  };
}
