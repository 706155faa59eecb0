// /add-device: one's own device is enrolled, on the page that administrators have for everybody.

import { AppError } from '@holdfast/kit/app-error';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { Account } from '../../shared/identity/port.ts';
import { enrollmentPages } from '../pages/enrollment/page.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { ownerOf } from './own.ts';

const PATH = '/add-device';

/** Adds the routes of this file. */
export function addDevicePage(app: App, deps: Deps): void {
  enrollmentPages(pagesOf(app, deps, ['portal']), deps, {
    route: PATH,
    access: 'own',
    current: 'add-device',
    ownerOf: (c) => enrolling(c, deps),
    pathOf: () => PATH,
    titleOf: () => 'Add a device',
    backOf: () => ({ path: '/', label: 'Back to my devices' }),
  });
}

async function enrolling(c: PageContext, deps: Deps): Promise<Account> {
  const owner = await ownerOf(c, deps);
  if (owner.kind === 'person') return owner.account;
  if (owner.kind === 'unknown') throw new AppError('unavailable', `Nobody can be let in now: ${owner.why}`);
  const { username } = c.get('principal');
  throw new AppError(
    'not_found',
    `${username} is an account of the stack, not of a person: it enrolls no devices. Sign in with an account of your own, which an administrator creates under People.`,
  );
}
