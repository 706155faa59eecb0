// What the pages about people and groups share: in the console viewers look and administrators change, in the portal both are
// for administrators alone, who meet no hidden account there.

import { AppError } from '@holdfast/kit/app-error';
import { isHidden } from '../../../shared/devices/accounts.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { userId } from '../../../shared/http/schemas/people.ts';
import type { Account } from '../../../shared/identity/port.ts';
import type { Form } from '../../pages/form.ts';
import { faceOf, type PageContext, pagesOf } from '../../pages/page-routes.ts';

type Handler = (c: PageContext) => Response | Promise<Response>;

interface PeoplePages {
  /** `access` is that of the console. */
  get(path: string, access: 'viewer' | 'admin', handler: Handler): void;
  post(path: string, handler: Handler): void;
}

/** At both faces. */
export function peoplePages(app: App, deps: Deps): PeoplePages {
  const atConsole = pagesOf(app, deps, ['console']);
  const atPortal = pagesOf(app, deps, ['portal']);
  return {
    get: (path, access, handler) => {
      atConsole.get(path, { access, area: 'people' }, handler);
      atPortal.get(path, { access: 'admin', area: 'people' }, handler);
    },
    post: (path, handler) => {
      for (const pages of [atConsole, atPortal]) pages.post(path, { access: 'admin', area: 'people' }, handler);
    },
  };
}

/** Whom the address names; `hidden`: also an account that is not for people, at the console alone. */
export async function personOf(c: PageContext, deps: Deps, { hidden = false } = {}): Promise<Account> {
  const account = await deps.identity.accounts.get(userId(c.req.param('id') ?? ''));
  const isShown = account !== undefined && (!isHidden(account, deps) || (hidden && faceOf(c) === 'console'));
  if (isShown) return account;
  throw new AppError('not_found', 'There is nobody at this address. The page People lists everybody.');
}

/** The form with other values in these fields. */
export function withFields(form: Form, fields: Readonly<Record<string, string | string[]>>): Form {
  const all = (name: string): string[] => {
    const own = Object.hasOwn(fields, name) ? fields[name] : undefined;
    return own === undefined ? form.all(name) : [own].flat();
  };
  return {
    all,
    exact: (name) => all(name)[0] ?? '',
    text: (name) => (all(name)[0] ?? '').trim(),
    has: (name) => all(name).length > 0,
  };
}

/** A form in which nothing was entered. */
export const EMPTY_FORM: Form = { all: () => [], exact: () => '', text: () => '', has: () => false };

/** Refuses what was filled in before somebody else changed the same: the form comes again with both, nothing is lost. */
export function mustBeUnchanged(changes: readonly string[]): void {
  if (changes.length === 0) return;
  throw new AppError(
    'conflict',
    `Meanwhile somebody else ${changes.join(', and ')}. Nothing is saved yet: the form now has this and your own entries. Look it over and save again.`,
  );
}
