// POST /people/{id}/…: each change of a person. What somebody else changed since the form was shown is said before anything is
// saved.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import { withoutDisguise } from '@holdfast/kit/text';
import { type UserView, toUserView } from '../../../shared/devices/accounts.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { emailAddress, groupNames, displayName } from '../../../shared/http/schemas/people.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import type { Account } from '../../../shared/identity/port.ts';
import { setUserGroups } from '../../../shared/people/channel-membership.ts';
import { deactivateUser, updateUser } from '../../../shared/people/deactivate-user.ts';
import { channelNames } from '../../../shared/people/groups.ts';
import { ROLES } from '../../../shared/sign-in/rules.ts';
import { attempt, type Form, formOf, parsed } from '../../pages/form.ts';
import type { PageContext } from '../../pages/page-routes.ts';
import { clockOf } from '../../pages/parts/time.tsx';
import { endEntered, endShown, type FormName, groupNamed, together } from './fields.tsx';
import { showPerson } from './person.tsx';
import { mustBeUnchanged, peoplePages, personOf, withFields } from './routes.ts';
import { formatEnd, ROLE_NAMES } from './account-status.tsx';

interface Input {
  c: PageContext;
  deps: Deps;
  user: UserView;
  form: Form;
}

interface Change {
  at: FormName;
  /** The word of the sentence afterwards. */
  done: string;
  carryOut(input: Input): Promise<unknown>;
  /** The form as it is shown again, with what others have changed; default: as it was sent. */
  merged?(requested: Input): Form | Promise<Form>;
}

/** Adds the routes of this file. */
export function personChangePages(app: App, deps: Deps): void {
  const pages = peoplePages(app, deps);
  for (const change of [DETAILS, EXPIRY, GROUPS, ROLE, DEACTIVATE, REACTIVATE])
    pages.post(`/people/:id/${change.at}`, async function changePerson(c) {
      const account = await personOf(c, deps);
      const input = { c, deps, user: toUserView(account, deps), form: await formOf(c) };
      const { refused: error } = await attempt(() => change.carryOut(input));
      if (error === undefined) return goTo(c, `/people/${account.id}?done=${change.done}`);
      const form = (await change.merged?.(input)) ?? input.form;
      return showPerson(c, deps, await latest(deps, account), { refusal: { at: change.at, form, error } });
    });
}

/** After what was begun has gone wrong. */
async function latest({ identity }: Deps, account: Account): Promise<Account> {
  return (await identity.accounts.get(account.id)) ?? account;
}

const DETAILS: Change = {
  at: 'details',
  done: 'details',
  async carryOut({ c, deps, user, form }) {
    const wanted = parsed(z.object({ name: displayName, email: emailAddress }), entered(form));
    const changes = (['name', 'email'] as const).filter((field) => isForeign(form, field, user[field], wanted[field]));
    mustBeUnchanged(changes.map((field) => changedTo(field === 'name' ? 'name' : 'e-mail', user[field])));
    await updateUser(actingIn(c, deps), { id: user.id, ...wanted });
  },
  merged: ({ user, form }) =>
    withFields(form, { name: kept(form, 'name', user.name), email: kept(form, 'email', user.email) }),
};

function entered(form: Form): { name: string; email: string } {
  return { name: form.text('name'), email: form.text('email') };
}

/** Somebody else has changed it, to something else than what is wanted: compared as pages show it. */
function isForeign(form: Form, field: string, now: string, wanted: string): boolean {
  const shown = withoutDisguise(now);
  return form.has(`had_${field}`) && form.exact(`had_${field}`) !== shown && wanted !== shown;
}

/** What one has not touched is as it is now. */
function kept(form: Form, field: string, now: string): string {
  const had = form.exact(`had_${field}`);
  return form.has(`had_${field}`) && form.text(field) === had.trim() ? now : form.text(field);
}

function changedTo(what: string, now: string): string {
  return now === '' ? `took the ${what} away` : `changed the ${what} to “${now}”`;
}

const EXPIRY: Change = {
  at: 'expiry',
  done: 'expiry',
  async carryOut({ c, deps, user, form }) {
    const clock = clockOf(deps);
    const had = form.has('had') ? endHad(form) : user.expires_at;
    const end = endEntered(form, clock, had);
    const isChanged = had !== user.expires_at && end !== user.expires_at;
    mustBeUnchanged(isChanged ? [`set the end of access to “${formatEnd(user.expires_at, clock)}”`] : []);
    await updateUser(actingIn(c, deps), { id: user.id, expires_at: end });
  },
  merged: ({ deps, user, form }) => {
    const had = endShown(endHad(form), clockOf(deps));
    const isTouched = form.text('ends') !== had.choice || form.text('on') !== had.on;
    const now = endShown(user.expires_at, clockOf(deps));
    return isTouched ? form : withFields(form, { ends: now.choice, on: now.on });
  },
};

/** The end that was shown. */
function endHad(form: Form): string | null {
  const text = form.exact('had');
  return Number.isNaN(Date.parse(text)) ? null : text;
}

const GROUPS: Change = {
  at: 'groups',
  done: 'groups',
  async carryOut(input) {
    const { c, deps, user, form } = input;
    const { groups: chosen } = parsed(z.object({ groups: groupNames }), { groups: form.all('groups') });
    const there = await channelNames(deps);
    mustBeUnchanged(groupChanges(input, there));
    const acting = actingIn(c, deps);
    const made = await groupNamed(acting, form.text('new_group'));
    await setUserGroups(acting, { id: user.id, groups: together(chosen, made) });
  },
  async merged({ deps, user, form }) {
    const there = await channelNames(deps);
    const [had, chosen] = [form.all('had'), form.all('groups')];
    const added = chosen.filter((name) => !had.includes(name));
    const removed = had.filter((name) => !chosen.includes(name));
    const groups = together(user.groups, added).filter((name) => !removed.includes(name) && there.includes(name));
    return withFields(form, { groups });
  },
};

/** What others have done to the groups since they were shown, but for what is wanted anyway. */
function groupChanges({ user, form }: Input, there: readonly string[]): string[] {
  const chosen = form.all('groups');
  // What is taken as shown where the form does not say it.
  const had = form.has('had') ? form.all('had') : user.groups;
  const gone = chosen.filter((name) => !there.includes(name));
  const added = user.groups.filter((name) => !had.includes(name) && !chosen.includes(name));
  const removed = had.filter((name) => !user.groups.includes(name) && chosen.includes(name) && !gone.includes(name));
  return [
    ...gone.map((name) => `deleted the group ${name}`),
    ...added.map((name) => `added ${name}`),
    ...removed.map((name) => `took ${name} away`),
  ];
}

const ROLE: Change = {
  at: 'role',
  done: 'role',
  async carryOut({ c, deps, user, form }) {
    const { role } = parsed(z.object({ role: z.enum(ROLES) }), { role: form.text('role') });
    const isChanged = form.has('had') && form.text('had') !== user.role && role !== user.role;
    mustBeUnchanged(isChanged ? [`made ${user.username} a ${ROLE_NAMES[user.role].toLowerCase()}`] : []);
    await updateUser(actingIn(c, deps), { id: user.id, role });
  },
};

const DEACTIVATE: Change = {
  at: 'deactivate',
  done: 'deactivated',
  carryOut: ({ c, deps, user }) => deactivateUser(actingIn(c, deps), { id: user.id }),
};

const REACTIVATE: Change = {
  at: 'reactivate',
  done: 'reactivated',
  async carryOut({ c, deps, user, form }) {
    if (user.is_active)
      throw new AppError('conflict', `${user.username} may come in already: somebody else was faster.`);
    const end = endEntered(form, clockOf(deps), user.expires_at);
    if (end !== null && Date.parse(end) <= deps.now().getTime())
      throw new AppError('invalid', 'Access ends: that is past; choose a time to come', {
        fields: [{ path: 'ends', message: 'that is past; choose a time to come' }],
      });
    await updateUser(actingIn(c, deps), { id: user.id, is_active: true, expires_at: end });
  },
};
