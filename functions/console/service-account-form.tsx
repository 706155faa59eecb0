// The form for a service account: its name, what it may do, where it talks.

import type { AppError } from '../../shared/domain/app-error.ts';
import { type Attempt, faultOf, type Form } from '../pages/form.ts';
import { Checks, Field } from '../pages/parts/field.tsx';
import { Missing } from '../pages/parts/notice.tsx';

const KINDS = [
  { value: 'data', label: 'Data: sends and receives in its groups, as a device does. Enough for nearly everything' },
  {
    value: 'admin',
    label:
      "Admin: may also use the core's admin API. Whoever has its key can read and change everything there: people, groups, every message",
  },
];

interface ServiceAccountFormProps {
  form: Form | undefined;
  refused: AppError | undefined;
  channels: Attempt<string[]>;
}

export function ServiceAccountForm({ form, refused, channels }: ServiceAccountFormProps) {
  return (
    <section class="card" id="make">
      <h2>Make a service account</h2>
      <form method="post" action="/service-accounts" class="narrow">
        <Field
          name="name"
          label="Name"
          hint="Letters, digits and . _ - ; svc_ is put before it. That of a deleted one brings it back with a new certificate."
          value={form?.text('name')}
          error={faultOf(refused, 'name')}
          required
          maxlength={64}
          autocomplete="off"
          plain
        />
        <Checks
          legend="Kind"
          name="kind"
          type="radio"
          choices={KINDS}
          chosen={[form?.text('kind') ?? 'data']}
          error={faultOf(refused, 'kind')}
        />
        <Groups form={form} refused={refused} channels={channels} />
        <button type="submit">Make the account</button>
      </form>
    </section>
  );
}

function Groups({ form, refused, channels }: ServiceAccountFormProps) {
  if (channels.refused !== undefined)
    return <Missing>The groups cannot be listed now: {channels.refused.message} The account would be in none.</Missing>;
  if (channels.done.length === 0)
    return (
      <Missing>
        There are no groups yet: the account would see nothing. <a href="/groups">Make a group</a> first.
      </Missing>
    );
  return (
    <Checks
      legend="Groups"
      hint="It hears and is heard in these alone; in none it sees nothing."
      name="groups"
      choices={channels.done.map((name) => ({ value: name, label: name }))}
      chosen={form?.all('groups') ?? []}
      error={faultOf(refused, 'groups')}
    />
  );
}
