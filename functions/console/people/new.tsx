// GET, POST /people/new: adds a person with groups and an expiry, then offers to add a device.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { CHANNEL_PREFIX } from '@holdfast/kit/names';
import { issueEnrollment } from '../../../shared/devices/enrollment/issue.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { serverAddress } from '../../../shared/http/schemas/enrollment.ts';
import { emailAddress, groupNames, displayName } from '../../../shared/http/schemas/people.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import type { Account } from '../../../shared/identity/port.ts';
import { suggestedUsername, usernameFault } from '../../../shared/identity/rules.ts';
import { createUser, mustBeCreatable } from '../../../shared/people/create-user.ts';
import { channelNames } from '../../../shared/people/groups.ts';
import { attempt, faultOf, type Form, formOf, parsed } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import type { PageContext } from '../../pages/page-routes.ts';
import { Card } from '../../pages/parts/card.tsx';
import { Field } from '../../pages/parts/field.tsx';
import { Problem } from '../../pages/parts/notice.tsx';
import { clockOf } from '../../pages/parts/time.tsx';
import { AccessEnds, endEntered, GroupChecks, groupNamed, mergeNames, newGroupFault } from './fields.tsx';
import { EMPTY_FORM, peoplePages, withFields } from './routes.ts';

/** Adds the routes of this file. */
export function personNewPage(app: App, deps: Deps): void {
  const pages = peoplePages(app, deps);
  pages.get('/people/new', 'admin', async function showEmptyForm(c) {
    const name = c.req.query('name') ?? '';
    return showNew(c, deps, withFields(EMPTY_FORM, { name, username: suggestedUsername(name) }));
  });
  pages.post('/people/new', async function makePerson(c) {
    const form = await formOf(c);
    const made = await attempt(() => create(c, deps, form));
    if (made.refused !== undefined) return showNew(c, deps, withSuggestion(form), made.refused);
    const path = `/people/${made.done.id}`;
    if (form.text('next') !== 'code') return goTo(c, `${path}?done=created`);
    // When this fails, the enrollment page says why and offers it again.
    await attempt(async () => {
      serverAddress(deps);
      await issueEnrollment(actingIn(c, deps), made.done);
    });
    return goTo(c, `${path}/enrollment?done=created`);
  });
}

async function create(c: PageContext, deps: Deps, form: Form): Promise<Account> {
  const username = form.text('username');
  const ends = await attempt(async () => endEntered(form, clockOf(deps)));
  const read = await attempt(async () =>
    parsed(newPerson(deps), {
      username,
      name: form.text('name') || username,
      email: form.text('email'),
      groups: form.all('groups'),
      new_group: form.text('new_group'),
    }),
  );
  // Reports all faults at once.
  const faults = [read, ends].flatMap(({ refused }) => refused?.fields ?? []);
  if (read.refused !== undefined || ends.refused !== undefined)
    throw new AppError('invalid', faults.map(({ path, message }) => `${path}: ${message}`).join('; '), {
      fields: faults,
    });
  const { new_group: newGroup, groups, ...wanted } = read.done;
  const acting = actingIn(c, deps);
  const person = { ...wanted, groups, expires_at: ends.done };
  // A refused person must leave no new group behind.
  if (newGroup !== '') await mustBeCreatable(acting, person);
  const made = await groupNamed(acting, newGroup);
  return createUser(acting, { ...person, groups: mergeNames(groups, made) });
}

function newPerson(deps: Deps) {
  const faultOfName = (text: unknown): string | undefined =>
    text === ''
      ? 'is required. Enter one, or enter a name to get a suggestion'
      : usernameFault(String(text), deps.settings.USERS_HIDDEN_PREFIXES);
  const faultOfGroup = (text: unknown): string | undefined => newGroupFault(String(text), deps);
  return z.object({
    username: z
      .string()
      .refine((text) => faultOfName(text) === undefined, { error: ({ input }) => faultOfName(input) }),
    name: displayName,
    email: emailAddress,
    groups: groupNames,
    new_group: z
      .string()
      .refine((text) => faultOfGroup(text) === undefined, { error: ({ input }) => faultOfGroup(input) }),
  });
}

function withSuggestion(form: Form): Form {
  return form.text('username') === '' ? withFields(form, { username: suggestedUsername(form.text('name')) }) : form;
}

async function showNew(c: PageContext, deps: Deps, form: Form, refused?: AppError): Promise<Response> {
  const clock = clockOf(deps);
  const names = await channelNames(deps);
  // A group that was created before the refusal is shown as a selected checkbox.
  const newGroup = `${CHANNEL_PREFIX}${form.text('new_group').replace(/^core_/i, '')}`;
  const exists = form.text('new_group') !== '' && names.includes(newGroup);
  const chosen = exists ? mergeNames(form.all('groups'), [newGroup]) : form.all('groups');
  const fault = (name: string): string | undefined => faultOf(refused, name);
  const body = (
    <Card>
      <Problem error={refused} />
      <form method="post" action="/people/new" class="narrow">
        <Field
          name="name"
          label="Name"
          hint="Full name, such as Ann Example."
          value={form.text('name')}
          error={fault('name')}
          autocomplete="off"
          maxlength={200}
          autofocus
        />
        <Field
          name="username"
          label="Username"
          hint="For signing in. It can't be changed later. Use letters without accents, digits and . _ - only. Leave empty for a suggestion."
          value={form.text('username')}
          error={fault('username')}
          autocomplete="off"
          pattern="[A-Za-z0-9._\-]{1,64}"
          title="1 to 64 letters without accents, digits, dots, underscores or hyphens"
          maxlength={64}
          plain
        />
        <AccessEnds
          clock={clock}
          choice={form.text('ends') || 'never'}
          on={form.text('on')}
          error={fault('ends')}
          hint="At that time the person is signed out and all certificates are revoked."
        />
        <GroupChecks
          names={names}
          chosen={chosen}
          newGroup={exists ? '' : form.text('new_group')}
          error={fault('groups')}
          newGroupError={fault('new_group')}
        />
        <Field
          name="email"
          type="email"
          label="Email"
          hint="Optional."
          value={form.text('email')}
          error={fault('email')}
          autocomplete="off"
          maxlength={254}
        />
        <div class="actions">
          <button type="submit" name="next" value="code">
            Add and show code
          </button>
          <button type="submit" class="quiet">
            Add person
          </button>
        </div>
      </form>
    </Card>
  );
  return framed(c, deps, { title: 'Add person', current: 'people', body, refused });
}
