// The form for an API token: what it is called, what it may do, how long.

import type { AppError } from '../../shared/domain/app-error.ts';
import type { Scope } from '../../shared/domain/principal.ts';
import { faultOf, type Form } from '../pages/form.ts';
import { Checks, Field, Select } from '../pages/parts/field.tsx';

/** In words, with what each may not. */
const SCOPES_IN_WORDS: Record<Scope, string> = {
  read: 'Read: what a viewer sees. Changes nothing, sees no tokens, settings or logs',
  users: 'People: users, groups, enrollment and certificates, but no administrators. Nothing else',
  admin: 'Everything that you may do yourself. For a program that you would give your own password',
};

const LIFETIMES = [
  { value: '1', label: '1 day' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: '365', label: '1 year' },
  { value: '1825', label: '5 years' },
];

interface TokenFormProps {
  form: Form | undefined;
  refused: AppError | undefined;
}

/** `id` is chosen here, so that a form that is sent twice makes one token. */
export function TokenForm({ form, refused }: TokenFormProps) {
  return (
    <section class="card" id="make">
      <h2>Make a token</h2>
      <form method="post" action="/tokens" class="narrow">
        <input type="hidden" name="id" value={crypto.randomUUID()} />
        <Field
          name="name"
          label="Name"
          hint="Which program it is for, such as Nightly backup"
          value={form?.text('name')}
          error={faultOf(refused, 'name')}
          required
          maxlength={64}
          autocomplete="off"
        />
        <Checks
          legend="What it may do"
          name="scope"
          type="radio"
          choices={Object.entries(SCOPES_IN_WORDS).map(([value, label]) => ({ value, label }))}
          chosen={[form?.text('scope') ?? 'read']}
          error={faultOf(refused, 'scope')}
        />
        <Select
          name="days"
          label="Ends after"
          hint="Then the program needs a new one"
          value={form?.text('days') ?? '90'}
          choices={LIFETIMES}
          error={faultOf(refused, 'expires_at')}
        />
        <button type="submit">Make the token</button>
      </form>
    </section>
  );
}
