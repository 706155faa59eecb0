// Where devices are enrolled: for somebody by an administrator, or for oneself. The page is the same.

import type { Account } from '../../../shared/ports/identity.ts';
import type { PageContext } from '../page-routes.ts';

export interface EnrollmentPlace {
  /** Of the routes: `/people/:id/enrollment`. Below it are `/withdraw` and `/progress`. */
  route: string;
  access: 'admin' | 'own';
  /** The key of the navigation entry that it belongs to. */
  current: string;
  /** Whose devices these are; throws `not_found` for nobody. */
  ownerOf: (c: PageContext) => Promise<Account>;
  /** The path of the page for this person. */
  pathOf: (account: Account) => string;
  titleOf: (account: Account) => string;
  /** The way back. */
  backOf: (account: Account) => { path: string; label: string };
}

/** What the parts of the page know of who it is for. */
export interface Enrollee {
  account: Account;
  path: string;
  access: EnrollmentPlace['access'];
}
