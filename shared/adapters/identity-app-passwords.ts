// App passwords at the identity provider: tokens of one intent. Those of another, such as our own API token, are never
// shown, revealed or deleted.

import type { TokenRequest } from '@goauthentik/api';
import { AppError } from '../domain/app-error.ts';
import type { AppPassword, AppPasswords, Attributes, NewAppPassword } from '../ports/identity.ts';
import { noAccount, type WriteAttributes } from './identity-accounts.ts';
import { pageOf, token, tokenKey, type Wire } from './identity-answers.ts';
import { type Outcome, type Provider, valueOf } from './identity-request.ts';
import { CEILING, ceilingMinutes } from './identity-token-lifetime.ts';

const PATH = 'core/tokens';
const IDENTIFIER = /^[-\w]{1,255}$/;
/** The provider's clock may be behind ours, and the request takes its time. */
const SPARE_MINUTES = 10;
const SAME_END_MS = 60_000;

const tokenPage = pageOf(token);
interface MadeToken {
  isAppPassword: boolean;
  password: AppPassword;
}
type Made = Outcome<MadeToken>;

export function identityAppPasswords(
  provider: Provider,
  writeAttributes: WriteAttributes,
  now: () => Date,
): AppPasswords {
  async function get(identifier: string): Promise<AppPassword | undefined> {
    if (!IDENTIFIER.test(identifier)) return undefined;
    const found = await provider.read(`${PATH}/${identifier}`, token);
    return found?.isAppPassword === true ? found.password : undefined;
  }

  async function list(username: string): Promise<AppPassword[]> {
    const query = { user__username: username, intent: 'app_password', ordering: 'identifier' };
    const found = await provider.all(PATH, tokenPage, query);
    // A provider that does not know a filter ignores it.
    return found
      .filter(({ isAppPassword, owner = username }) => isAppPassword && owner === username)
      .map(({ password }) => password);
  }

  async function reveal(identifier: string): Promise<string | undefined> {
    return (await get(identifier)) && keyOf(identifier);
  }

  async function keyOf(identifier: string): Promise<string | undefined> {
    return (await provider.read(`${PATH}/${identifier}/view_key`, tokenKey))?.key;
  }

  async function remove(identifier: string): Promise<void> {
    if ((await get(identifier)) !== undefined) await discard(identifier);
  }

  async function discard(identifier: string): Promise<void> {
    valueOf(await provider.act('DELETE', `${PATH}/${identifier}`));
  }

  async function create(wanted: NewAppPassword): Promise<AppPassword & { key: string }> {
    const { identifier } = wanted;
    if (!IDENTIFIER.test(identifier)) throw badIdentifier();
    const minutes = lifetimeMinutes(wanted.expiresAt, now());
    let outcome = await post(wanted);
    // Asked first, raised then: a group may give a higher ceiling, and the account's own would hide that.
    if (minutes > 0 && 'refused' in outcome && outcome.refused.members.includes('expires')) {
      await raise(wanted.accountId, minutes);
      outcome = await post(wanted);
    }
    const password = await madeBy(outcome, wanted);
    try {
      const key = await keyOf(identifier);
      if (key === undefined) throw provider.nonsense(`does not show the key of the app password that it has just made`);
      return { ...password, key };
    } catch (error) {
      await discardAfter(error, identifier);
      throw error;
    }
  }

  function post({ identifier, accountId, description, expiresAt }: NewAppPassword): Promise<Made> {
    const body: Wire<TokenRequest> = {
      identifier,
      intent: 'app_password',
      user: accountId,
      description,
      ...(expiresAt === null ? { expiring: false } : { expiring: true, expires: expiresAt.toISOString() }),
    };
    return provider.exchange('POST', PATH, token, { body });
  }

  /** The app password that was made, if it is the one that was asked for. */
  async function madeBy(outcome: Made, wanted: NewAppPassword): Promise<AppPassword> {
    const { identifier, accountId } = wanted;
    if ('refused' in outcome) {
      const { members, error } = outcome.refused;
      if (members.includes('identifier') && (await provider.read(`${PATH}/${identifier}`, token)) !== undefined) {
        throw new AppError('conflict', `There is a token with the identifier ${identifier} already`);
      }
      throw members.includes('user') ? new AppError('not_found', noAccount(accountId)) : error;
    }
    if (!('done' in outcome)) throw provider.nonsense('has no list of tokens. Correct IDENTITY_URL.');
    if (isAsWanted(outcome.done, wanted)) return outcome.done.password;
    // For a caller that is no superuser it makes them for the caller.
    const what = 'made another token than the one that was asked for. IDENTITY_TOKEN must be of a superuser.';
    const error = provider.nonsense(what);
    await discardAfter(error, identifier);
    throw error;
  }

  /** Nothing half-made stays; what went wrong first is what counts. */
  async function discardAfter(error: unknown, identifier: string): Promise<void> {
    try {
      await discard(identifier);
    } catch (cause) {
      if (!(error instanceof AppError)) throw cause;
      const text = `${error.message}. The app password ${identifier}, whose key nobody has seen, could not be deleted again.`;
      throw new AppError(error.code, text, { cause });
    }
  }

  async function raise(accountId: number, minutes: number): Promise<void> {
    const needed = minutes + SPARE_MINUTES;
    await writeAttributes(accountId, (attributes: Attributes) =>
      ceilingMinutes(attributes[CEILING]) >= needed ? {} : { [CEILING]: `minutes=${needed}` },
    );
  }

  return { create, list, get, reveal, delete: remove };
}

function isAsWanted({ isAppPassword, password }: MadeToken, { identifier, accountId, expiresAt }: NewAppPassword) {
  const { expiresAt: end } = password;
  const isSameEnd =
    end === null || expiresAt === null
      ? end === expiresAt
      : Math.abs(Date.parse(end) - expiresAt.getTime()) <= SAME_END_MS;
  return isAppPassword && password.identifier === identifier && password.accountId === accountId && isSameEnd;
}

/** 0 for one that never ends: no ceiling counts. */
function lifetimeMinutes(expiresAt: Date | null, now: Date): number {
  return expiresAt === null ? 0 : Math.max(0, Math.ceil((expiresAt.getTime() - now.getTime()) / 60_000));
}

function badIdentifier(): AppError {
  const message = 'letters, digits, - and _ are allowed, up to 255';
  return new AppError('invalid', `This cannot be the identifier of an app password: ${message}`, {
    fields: [{ path: 'identifier', message }],
  });
}
