// The forms that change a person: rows that show the current value and expand into a form. Hidden
// fields hold the shown values, so that a change by another administrator is not overwritten
// unseen.

import type { Child } from 'hono/jsx';
import type { UserView } from '../../../shared/devices/accounts.ts';
import { ROLES } from '../../../shared/sign-in/rules.ts';
import { faultOf } from '../../pages/form.ts';
import type { PageContext } from '../../pages/page-routes.ts';
import { Checks, Field } from '../../pages/parts/field.tsx';
import type { Clock } from '../../pages/parts/time.tsx';
import { AccessEnds, endShown, type FormName, GroupChecks, type Refusal } from './fields.tsx';
import { formatEnd, ROLE_MEANINGS, ROLE_NAMES } from './account-status.tsx';

interface PersonFormsProps {
  c: PageContext;
  user: UserView;
  clock: Clock;
  refusal: Refusal | undefined;
  isFirst: boolean;
  channels: readonly string[];
}

/** The state of one form: the submitted values and faults when it was refused. */
function formState({ user, refusal }: PersonFormsProps, at: FormName) {
  const refused = refusal?.at === at ? refusal : undefined;
  return {
    sent: refused?.form,
    fault: (field: string): string | undefined => refused && faultOf(refused.error, field),
    row: { at, id: user.id, isOpen: refused !== undefined },
  };
}

export function PersonForms(props: PersonFormsProps) {
  const { isFirst, user } = props;
  return (
    <>
      <GroupsForm {...props} />
      {isFirst ? null : <ExpiryForm {...props} />}
      <DetailsForm {...props} />
      {isFirst ? (
        <p class="fine">
          {user.username} is the first administrator and can't be demoted, deactivated or set to expire.
        </p>
      ) : (
        <RoleForm {...props} />
      )}
      <PasswordForm {...props} />
    </>
  );
}

function GroupsForm(props: PersonFormsProps) {
  const { groups } = props.user;
  const { sent, fault, row } = formState(props, 'groups');
  return (
    <Row {...row} label="Groups" now={<Groups names={groups} />} button="Save groups">
      <HiddenValues name="had" values={groups} />
      <GroupChecks
        names={props.channels}
        chosen={sent?.all('groups') ?? groups}
        newGroup={sent?.text('new_group') ?? ''}
        error={fault('groups')}
        newGroupError={fault('new_group')}
      />
    </Row>
  );
}

function ExpiryForm(props: PersonFormsProps) {
  const { clock, user } = props;
  const { sent, fault, row } = formState(props, 'expiry');
  const end = user.expires_at;
  const shown = endShown(end, clock);
  return (
    <Row {...row} label="Access expires" now={end === null ? 'never' : formatEnd(end, clock)} button="Save expiry">
      <HiddenValues name="had" values={[end ?? '']} />
      <AccessEnds
        clock={clock}
        choice={sent?.text('ends') ?? shown.choice}
        on={sent?.text('on') ?? shown.on}
        error={fault('ends')}
      />
    </Row>
  );
}

function DetailsForm(props: PersonFormsProps) {
  const { name, email } = props.user;
  const { sent, fault, row } = formState(props, 'details');
  return (
    <Row {...row} label="Name and email" now={<Details name={name} email={email} />} button="Save changes">
      <HiddenValues name="had_name" values={[name]} />
      <HiddenValues name="had_email" values={[email]} />
      <Field
        name="name"
        label="Name"
        value={sent?.text('name') ?? name}
        error={fault('name')}
        autocomplete="off"
        maxlength={200}
        required
      />
      <Field
        name="email"
        type="email"
        label="Email"
        hint="Optional."
        value={sent?.text('email') ?? email}
        error={fault('email')}
        autocomplete="off"
        maxlength={254}
      />
    </Row>
  );
}

function RoleForm(props: PersonFormsProps) {
  const { role } = props.user;
  const { sent, fault, row } = formState(props, 'role');
  return (
    <Row {...row} label="Role" now={ROLE_NAMES[role]} button="Save role">
      <HiddenValues name="had" values={[role]} />
      <Checks
        legend="Role"
        name="role"
        type="radio"
        choices={ROLES.map((value) => ({ value, label: `${ROLE_NAMES[value]}: ${ROLE_MEANINGS[value]}` }))}
        chosen={[sent?.text('role') ?? role]}
        error={fault('role')}
      />
    </Row>
  );
}

function PasswordForm(props: PersonFormsProps) {
  const { fault, row } = formState(props, 'password');
  const generate = (
    <form method="post" action={`/people/${row.id}/password`}>
      <button type="submit" class="quiet" name="make" value="yes">
        Generate password
      </button>
    </form>
  );
  return (
    <Row {...row} label="Password" now="hidden" button="Set password" after={generate}>
      <p class="hint">
        A new password signs the person out everywhere. Devices with a certificate stay connected. A generated password
        is shown only once.
      </p>
      <Field
        name="password"
        id="new-password"
        type="password"
        label="New password"
        hint="At least 12 characters. Not the username or a published default password."
        error={fault('password')}
        autocomplete="new-password"
        maxlength={1024}
        required
      />
      <Field
        name="repeated"
        type="password"
        label="Repeat new password"
        error={fault('repeated')}
        autocomplete="new-password"
        maxlength={1024}
        required
      />
    </Row>
  );
}

function HiddenValues({ name, values }: { name: string; values: readonly string[] }) {
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
  /** A second form below. */
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
