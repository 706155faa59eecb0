// POST /people/{id}/…: changes one person. Refuses values that another administrator has changed
// meanwhile.

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
import { endEntered, endFault, endShown, type FormName, groupNamed, mergeNames } from './fields.tsx';
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
  /** The `?done=` value of the page that follows. */
  done: string;
  carryOut(input: Input): Promise<unknown>;
  /**
   * The form shown again after a refusal, with the changes of others merged in. Default: as it was
   * sent.
   */
  merged?(input: Input): Form | Promise<Form>;
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

/** The account as it is after a failed change. */
async function latest({ identity }: Deps, account: Account): Promise<Account> {
  return (await identity.accounts.get(account.id)) ?? account;
}

const DETAILS: Change = {
  at: 'details',
  done: 'details',
  async carryOut({ c, deps, user, form }) {
    const wanted = parsed(z.object({ name: displayName, email: emailAddress }), entered(form));
    const changes = (['name', 'email'] as const).filter((field) => isForeign(form, field, user[field], wanted[field]));
    mustBeUnchanged(changes.map((field) => changedTo(field, user[field])));
    await updateUser(actingIn(c, deps), { id: user.id, ...wanted });
  },
  merged: ({ user, form }) =>
    withFields(form, { name: kept(form, 'name', user.name), email: kept(form, 'email', user.email) }),
};

function entered(form: Form): { name: string; email: string } {
  return { name: form.text('name'), email: form.text('email') };
}

/**
 * True when someone else changed it to another value than the one entered. Compares values as pages
 * show them.
 */
function isForeign(form: Form, field: string, now: string, wanted: string): boolean {
  const shown = withoutDisguise(now);
  return form.has(`had_${field}`) && form.exact(`had_${field}`) !== shown && wanted !== shown;
}

/** The entered value, or the current one where the field was not touched. */
function kept(form: Form, field: string, now: string): string {
  const had = form.exact(`had_${field}`);
  return form.has(`had_${field}`) && form.text(field) === had.trim() ? now : form.text(field);
}

function changedTo(what: string, now: string): string {
  return now === '' ? `removed the ${what}` : `changed the ${what} to “${now}”`;
}

const EXPIRY: Change = {
  at: 'expiry',
  done: 'expiry',
  async carryOut({ c, deps, user, form }) {
    const clock = clockOf(deps);
    const had = form.has('had') ? endHad(form) : user.expires_at;
    const end = endEntered(form, clock, had);
    const isChanged = had !== user.expires_at && end !== user.expires_at;
    mustBeUnchanged(isChanged ? [`changed access to “${formatEnd(user.expires_at, clock)}”`] : []);
    await updateUser(actingIn(c, deps), { id: user.id, expires_at: end });
  },
  merged: ({ deps, user, form }) => {
    const had = endShown(endHad(form), clockOf(deps));
    const isTouched = form.text('ends') !== had.choice || form.text('on') !== had.on;
    const now = endShown(user.expires_at, clockOf(deps));
    return isTouched ? form : withFields(form, { ends: now.choice, on: now.on });
  },
};

/** The expiry that the form showed. */
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
    const existing = await channelNames(deps);
    mustBeUnchanged(groupChanges(input, existing));
    const acting = actingIn(c, deps);
    const made = await groupNamed(acting, form.text('new_group'));
    await setUserGroups(acting, { id: user.id, groups: mergeNames(chosen, made) });
  },
  async merged({ deps, user, form }) {
    const existing = await channelNames(deps);
    const [had, chosen] = [form.all('had'), form.all('groups')];
    const added = chosen.filter((name) => !had.includes(name));
    const removed = had.filter((name) => !chosen.includes(name));
    const groups = mergeNames(user.groups, added).filter((name) => !removed.includes(name) && existing.includes(name));
    return withFields(form, { groups });
  },
};

/**
 * Group changes that others made since the form was shown, except those that match the entered
 * ones.
 */
function groupChanges({ user, form }: Input, existing: readonly string[]): string[] {
  const chosen = form.all('groups');
  // A form without `had` counts as showing the current groups.
  const had = form.has('had') ? form.all('had') : user.groups;
  const gone = chosen.filter((name) => !existing.includes(name));
  const added = user.groups.filter((name) => !had.includes(name) && !chosen.includes(name));
  const removed = had.filter((name) => !user.groups.includes(name) && chosen.includes(name) && !gone.includes(name));
  return [
    ...gone.map((name) => `deleted the group ${name}`),
    ...added.map((name) => `added the group ${name}`),
    ...removed.map((name) => `removed the group ${name}`),
  ];
}

const ROLE: Change = {
  at: 'role',
  done: 'role',
  async carryOut({ c, deps, user, form }) {
    const { role } = parsed(z.object({ role: z.enum(ROLES) }), { role: form.text('role') });
    const isChanged = form.has('had') && form.text('had') !== user.role && role !== user.role;
    mustBeUnchanged(isChanged ? [`changed the role to ${ROLE_NAMES[user.role].toLowerCase()}`] : []);
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
      throw new AppError(
        'conflict',
        `${user.username} is already active. Another administrator just reactivated this account.`,
      );
    const end = endEntered(form, clockOf(deps), user.expires_at);
    if (end !== null && Date.parse(end) <= deps.now().getTime())
      throw endFault('this time is in the past. Choose a later time.');
    await updateUser(actingIn(c, deps), { id: user.id, is_active: true, expires_at: end });
  },
};
