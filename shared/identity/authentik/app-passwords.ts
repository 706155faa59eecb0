// Manages app passwords at the identity provider: tokens of one intent. Tokens of another intent,
// such as our own API token, are never shown, revealed or deleted.

import type { TokenRequest } from '@goauthentik/api';
import { AppError } from '@holdfast/kit/app-error';
import type { Attributes, Json } from '@holdfast/kit/json';
import { MINUTE_MS } from '@holdfast/kit/time';
import type { AppPassword, AppPasswords, NewAppPassword } from '../port.ts';
import { IdentityAccounts, noAccount } from './accounts.ts';
import { pageOf, token, tokenKey, type Wire } from './answers.ts';
import { IdentityProvider, type Outcome, valueOf } from './request.ts';

/**
 * The attribute of an account that holds the longest lifetime of its app passwords, in the
 * provider's own duration format.
 */
export const CEILING = 'goauthentik.io/user/token-maximum-lifetime';

const UNIT_MINUTES: Record<string, number> = {
  microseconds: 1 / 60_000_000,
  milliseconds: 1 / MINUTE_MS,
  seconds: 1 / 60,
  minutes: 1,
  hours: 60,
  days: 24 * 60,
  weeks: 7 * 24 * 60,
};

/** Minutes of `days=7;hours=12`; 0 for an invalid duration, which the provider also ignores. */
export function ceilingMinutes(value: Json | undefined): number {
  if (typeof value !== 'string') return 0;
  let minutes = 0;
  for (const part of value.split(';')) {
    if (part.trim() === '') continue;
    const [, unit = '', number = ''] = /^\s*(\w+)\s*=\s*(-?\d+(?:\.\d+)?)\s*$/.exec(part) ?? [];
    const each = UNIT_MINUTES[unit.toLowerCase()];
    if (each === undefined) return 0;
    minutes += each * Number(number);
  }
  return minutes;
}

const PATH = 'core/tokens';
const IDENTIFIER = /^[-\w]{1,255}$/;
/** The provider's clock may be behind ours, and the request takes some time. */
const SPARE_MINUTES = 10;
const SAME_END_MS = 60_000;

const tokenPage = pageOf(token);
export interface MadeToken {
  isAppPassword: boolean;
  password: AppPassword;
}
type Made = Outcome<MadeToken>;

export class IdentityAppPasswords implements AppPasswords {
  readonly #provider: IdentityProvider;
  readonly #accounts: IdentityAccounts;
  readonly #now: () => Date;

  constructor(provider: IdentityProvider, accounts: IdentityAccounts, now: () => Date) {
    this.#provider = provider;
    this.#accounts = accounts;
    this.#now = now;
  }

  async get(identifier: string): Promise<AppPassword | undefined> {
    if (!IDENTIFIER.test(identifier)) return undefined;
    const found = await this.#provider.read(`${PATH}/${identifier}`, token);
    return found?.isAppPassword === true ? found.password : undefined;
  }

  async list(username: string): Promise<AppPassword[]> {
    const query = { user__username: username, intent: 'app_password', ordering: 'identifier' };
    const found = await this.#provider.all(PATH, tokenPage, query);
    // A provider that does not know a filter ignores it.
    return found
      .filter(({ isAppPassword, owner = username }) => isAppPassword && owner === username)
      .map(({ password }) => password);
  }

  async reveal(identifier: string): Promise<string | undefined> {
    return (await this.get(identifier)) && this.#keyOf(identifier);
  }

  async #keyOf(identifier: string): Promise<string | undefined> {
    return (await this.#provider.read(`${PATH}/${identifier}/view_key`, tokenKey))?.key;
  }

  async delete(identifier: string): Promise<void> {
    if ((await this.get(identifier)) !== undefined) await this.#discard(identifier);
  }

  async #discard(identifier: string): Promise<void> {
    valueOf(await this.#provider.act('DELETE', `${PATH}/${identifier}`));
  }

  async create(wanted: NewAppPassword): Promise<AppPassword & { key: string }> {
    const { identifier } = wanted;
    if (!IDENTIFIER.test(identifier)) throw badIdentifier();
    const minutes = lifetimeMinutes(wanted.expiresAt, this.#now());
    let outcome = await this.#post(wanted);
    // Checked before raising: a group may set a higher ceiling, and the account's own would hide
    // it.
    if (minutes > 0 && 'refused' in outcome && outcome.refused.members.includes('expires')) {
      await this.#raise(wanted.accountId, minutes);
      outcome = await this.#post(wanted);
    }
    const password = await this.#madeBy(outcome, wanted);
    try {
      const key = await this.#keyOf(identifier);
      if (key === undefined)
        throw this.#provider.nonsense('does not show the key of the app password that it has just made');
      return { ...password, key };
    } catch (error) {
      await this.#discardAfter(error, identifier);
      throw error;
    }
  }

  #post({ identifier, accountId, description, expiresAt }: NewAppPassword): Promise<Made> {
    const body: Wire<TokenRequest> = {
      identifier,
      intent: 'app_password',
      user: accountId,
      description,
      ...(expiresAt === null ? { expiring: false } : { expiring: true, expires: expiresAt.toISOString() }),
    };
    return this.#provider.exchange('POST', PATH, token, { body });
  }

  /** The new app password, if it is the requested one. */
  async #madeBy(outcome: Made, wanted: NewAppPassword): Promise<AppPassword> {
    const { identifier, accountId } = wanted;
    if ('refused' in outcome) {
      const { members, error } = outcome.refused;
      if (members.includes('identifier') && (await this.#provider.read(`${PATH}/${identifier}`, token)) !== undefined) {
        throw new AppError('conflict', `There is already a token with the identifier ${identifier}`);
      }
      throw members.includes('user') ? new AppError('not_found', noAccount(accountId)) : error;
    }
    if (!('done' in outcome)) throw this.#provider.nonsense('has no list of tokens. Correct IDENTITY_URL.');
    if (isAsWanted(outcome.done, wanted)) return outcome.done.password;
    // For a caller without superuser rights, the provider makes the token for the caller.
    const what = 'made another token than requested. IDENTITY_TOKEN must belong to a superuser.';
    const error = this.#provider.nonsense(what);
    await this.#discardAfter(error, identifier);
    throw error;
  }

  /** Nothing half-made stays; the first error counts. */
  async #discardAfter(error: unknown, identifier: string): Promise<void> {
    try {
      await this.#discard(identifier);
    } catch (cause) {
      if (!(error instanceof AppError)) throw cause;
      const text = `${error.message}. The app password ${identifier} could not be deleted again; its key was never shown.`;
      throw new AppError(error.code, text, { cause });
    }
  }

  async #raise(accountId: number, minutes: number): Promise<void> {
    const needed = minutes + SPARE_MINUTES;
    await this.#accounts.writeAttributes(accountId, (attributes: Attributes) =>
      ceilingMinutes(attributes[CEILING]) >= needed ? {} : { [CEILING]: `minutes=${needed}` },
    );
  }
}

function isAsWanted({ isAppPassword, password }: MadeToken, { identifier, accountId, expiresAt }: NewAppPassword) {
  const { expiresAt: end } = password;
  const isSameEnd =
    end === null || expiresAt === null
      ? end === expiresAt
      : Math.abs(Date.parse(end) - expiresAt.getTime()) <= SAME_END_MS;
  return isAppPassword && password.identifier === identifier && password.accountId === accountId && isSameEnd;
}

/** 0 for one that never expires: no ceiling applies. */
function lifetimeMinutes(expiresAt: Date | null, now: Date): number {
  return expiresAt === null ? 0 : Math.max(0, Math.ceil((expiresAt.getTime() - now.getTime()) / MINUTE_MS));
}

function badIdentifier(): AppError {
  const message = 'letters, digits, - and _ are allowed, up to 255';
  return new AppError('invalid', `Invalid identifier of an app password: ${message}`, {
    fields: [{ path: 'identifier', message }],
  });
}
