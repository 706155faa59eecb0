// POST /people/{id}/password: sets an entered password, or generates one and shows it once. Also
// adds the enrollment page.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { userOf } from '../../../shared/devices/accounts.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { newPassword, userId } from '../../../shared/http/schemas/people.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { makePassword, setUserPassword } from '../../../shared/people/create-user.ts';
import { enrollmentPages } from '../../pages/enrollment/page.tsx';
import { attempt, type Form, formOf, parsed } from '../../pages/form.ts';
import { pagesOf } from '../../pages/page-routes.ts';
import { Copyable } from '../../pages/parts/card.tsx';
import { showPerson } from './person.tsx';
import { EMPTY_FORM, peoplePages, personOf } from './routes.ts';

/** Adds the route of this file. */
export function personPasswordPage(app: App, deps: Deps): void {
  peoplePages(app, deps).post('/people/:id/password', async function setPassword(c) {
    const account = await personOf(c, deps);
    const { id, username } = account;
    const form = await formOf(c);
    const isGenerated = form.has('make');
    const set = await attempt(async () => {
      const password = isGenerated ? makePassword() : passwordOf(form);
      await setUserPassword(actingIn(c, deps), { id, password });
      return password;
    });
    // A refused form comes back without its passwords.
    if (set.refused !== undefined)
      return showPerson(c, deps, account, { refusal: { at: 'password', form: EMPTY_FORM, error: set.refused } });
    if (!isGenerated) return goTo(c, `/people/${id}?done=password`);
    return showPerson(c, deps, account, { message: <GeneratedPassword username={username} password={set.done} /> });
  });
}

function passwordOf(form: Form): string {
  const { password } = parsed(z.object({ password: newPassword }), { password: form.exact('password') });
  if (password === form.exact('repeated')) return password;
  const message = 'The passwords do not match. Type both again.';
  throw new AppError('invalid', message, {
    fields: [{ path: 'repeated', message }],
  });
}

function GeneratedPassword({ username, password }: { username: string; password: string }) {
  return (
    <div class="notice good" role="status">
      <p>
        New password for {username}, shown only once. Copy it now and give it only to {username}. All earlier sessions
        have ended.
      </p>
      <Copyable id="made-password" text={password} />
    </div>
  );
}

/** Adds the routes of this file. */
export function enrollmentPage(app: App, deps: Deps): void {
  enrollmentPages(pagesOf(app, deps, ['console', 'portal']), deps, {
    route: '/people/:id/enrollment',
    access: 'admin',
    current: 'people',
    ownerOf: (c) => userOf(deps, userId(c.req.param('id') ?? '')),
    pathOf: ({ id }) => `/people/${id}/enrollment`,
    titleOf: ({ username }) => `Add device for ${username}`,
    backOf: ({ id, username }) => ({ path: `/people/${id}`, label: `Back to ${username}` }),
  });
}
