// What can be changed of a person: rows that show what it is now and unfold into a form. Hidden fields say what was shown, so that
// nothing that somebody else changed meanwhile is lost unseen.

import type { Child } from 'hono/jsx';
import type { ShownUser } from '../../../shared/devices/accounts.ts';
import { ROLES } from '../../../shared/sign-in/principal.ts';
import type { Clock } from '../../pages/clock.ts';
import { faultOf, type Form } from '../../pages/form.ts';
import type { PageContext } from '../../pages/page-routes.ts';
import { Checks, Field } from '../../pages/parts/field.tsx';
import { AccessEnds, endShown, type FormName, type Refusal } from './access-ends.tsx';
import { GroupChecks } from './group-checks.tsx';
import { endInWords, ROLE_MEANINGS, ROLE_NAMES } from './standing.tsx';

interface PersonFormsProps {
  c: PageContext;
  user: ShownUser;
  clock: Clock;
  refusal: Refusal | undefined;
  isFirst: boolean;
  channels: readonly string[];
}

export function PersonForms({ user, clock, refusal, isFirst, channels }: PersonFormsProps) {
  const { id, username, name, email, groups, role, expires_at: end } = user;
  const sent = (at: FormName): Form | undefined => (refusal?.at === at ? refusal.form : undefined);
  const fault = (at: FormName, field: string): string | undefined =>
    refusal?.at === at ? faultOf(refusal.error, field) : undefined;
  const row = (at: FormName) => ({ at, id, isOpen: sent(at) !== undefined });
  const shownEnd = endShown(end, clock);
  return (
    <>
      <Row {...row('groups')} label="Groups" now={<Groups names={groups} />} button="Save the groups">
        <Had name="had" values={groups} />
        <GroupChecks
          names={channels}
          chosen={sent('groups')?.all('groups') ?? groups}
          newGroup={sent('groups')?.text('new_group') ?? ''}
          error={fault('groups', 'groups')}
          newGroupError={fault('groups', 'new_group')}
        />
      </Row>
      {isFirst ? null : (
        <Row
          {...row('expiry')}
          label="Access ends"
          now={end === null ? 'never' : endInWords(end, clock)}
          button="Save the end"
        >
          <Had name="had" values={[end ?? '']} />
          <AccessEnds
            clock={clock}
            choice={sent('expiry')?.text('ends') ?? shownEnd.choice}
            on={sent('expiry')?.text('on') ?? shownEnd.on}
            error={fault('expiry', 'ends')}
          />
        </Row>
      )}
      <Row {...row('details')} label="Name, e-mail" now={<Details name={name} email={email} />} button="Save">
        <Had name="had_name" values={[name]} />
        <Had name="had_email" values={[email]} />
        <Field
          name="name"
          label="Name"
          value={sent('details')?.text('name') ?? name}
          error={fault('details', 'name')}
          autocomplete="off"
          maxlength={200}
          required
        />
        <Field
          name="email"
          type="email"
          label="E-mail"
          hint="May be left empty."
          value={sent('details')?.text('email') ?? email}
          error={fault('details', 'email')}
          autocomplete="off"
          maxlength={254}
        />
      </Row>
      {isFirst ? (
        <p class="fine">{username} is the first administrator: it cannot be demoted, deactivated or given an end.</p>
      ) : (
        <Row {...row('role')} label="Role" now={ROLE_NAMES[role]} button="Save the role">
          <Had name="had" values={[role]} />
          <Checks
            legend="Role"
            name="role"
            type="radio"
            choices={ROLES.map((value) => ({ value, label: `${ROLE_NAMES[value]}: ${ROLE_MEANINGS[value]}` }))}
            chosen={[sent('role')?.text('role') ?? role]}
            error={fault('role', 'role')}
          />
        </Row>
      )}
      <Row
        {...row('password')}
        label="Password"
        now="not shown"
        button="Set this password"
        after={
          <form method="post" action={`/people/${id}/password`}>
            <button type="submit" class="quiet" name="make" value="yes">
              Make one, and show it once
            </button>
          </form>
        }
      >
        <p class="hint">Setting one signs the person out everywhere. Devices with a certificate stay.</p>
        <Field
          name="password"
          id="new-password"
          type="password"
          label="New password"
          hint="12 characters at least; not the user name, and none that manuals publish."
          error={fault('password', 'password')}
          autocomplete="new-password"
          maxlength={1024}
          required
        />
        <Field
          name="repeated"
          type="password"
          label="The same again"
          error={fault('password', 'repeated')}
          autocomplete="new-password"
          maxlength={1024}
          required
        />
      </Row>
    </>
  );
}

function Had({ name, values }: { name: string; values: readonly string[] }) {
  return (
    <>
      {values.map((value) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  );
}

interface RowProps {
  at: FormName;
  id: number;
  label: string;
  now: Child;
  button: string;
  isOpen: boolean;
  children: Child;
  /** Another form for the same. */
  after?: Child;
}

function Row({ at, id, label, now, button, isOpen, children, after }: RowProps) {
  return (
    <details class="unfold" id={at} open={isOpen}>
      <summary>
        <span class="name">{label}</span>
        <span class="now">{now}</span>
        <span class="change">Change</span>
      </summary>
      <form method="post" action={`/people/${id}/${at}`}>
        {children}
        <button type="submit">{button}</button>
      </form>
      {after}
    </details>
  );
}

function Groups({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <>none</>;
  return (
    <span class="tags">
      {names.map((name) => (
        <code>{name}</code>
      ))}
    </span>
  );
}

function Details({ name, email }: { name: string; email: string }) {
  return (
    <>
      {name}
      {email === '' ? null : (
        <>
          <br />
          {email}
        </>
      )}
    </>
  );
}
