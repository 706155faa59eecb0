// The identity provider, where the settings place it; without a place it says so when it is asked.

import { httpIdentity } from '../adapters/identity-http.ts';
import type { Settings } from '../config/settings.ts';
import { AppError } from '../domain/app-error.ts';
import type { Exclusive } from '../ports/exclusive.ts';
import type { Identity } from '../ports/identity.ts';

export function identityOf({ IDENTITY_URL: url, IDENTITY_TOKEN: token }: Settings, exclusive: Exclusive): Identity {
  if (url === undefined) return unplacedIdentity('IDENTITY_URL');
  if (token === undefined) return unplacedIdentity('IDENTITY_TOKEN');
  return httpIdentity({ url, token, fetch, exclusive });
}

function unplacedIdentity(variable: string): Identity {
  const text = `The identity provider cannot be asked. Remedy: set ${variable}.`;
  const refuse = (): Promise<never> => Promise.reject(new AppError('unavailable', text));
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
