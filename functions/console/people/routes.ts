// Shared helpers of the pages about people and groups. The console shows them to viewers; the
// portal only to administrators, and without hidden accounts.

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
  /** `access` applies to the console. The portal always requires an administrator. */
  get(path: string, access: 'viewer' | 'admin', handler: Handler): void;
  post(path: string, handler: Handler): void;
}

/** Registers pages in console and portal. */
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

/**
 * The account in the address. `hidden` also allows hidden accounts, in the console only. Throws
 * `not_found`.
 */
export async function personOf(c: PageContext, deps: Deps, { hidden = false } = {}): Promise<Account> {
  const account = await deps.identity.accounts.get(userId(c.req.param('id') ?? ''));
  const isShown = account !== undefined && (!isHidden(account, deps) || (hidden && faceOf(c) === 'console'));
  if (isShown) return account;
  throw new AppError('not_found', 'No person at this address. Open People to see all people.');
}

/** The form with these fields replaced. */
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

export const EMPTY_FORM: Form = { all: () => [], exact: () => '', text: () => '', has: () => false };

/**
 * Throws `conflict` when another administrator changed the same fields since the form was shown.
 */
export function mustBeUnchanged(changes: readonly string[]): void {
  if (changes.length === 0) return;
  throw new AppError(
    'conflict',
    `Nothing was saved: another administrator ${changes.join(', and ')}. The form now has that change and your entries. Review it and save again.`,
  );
}
