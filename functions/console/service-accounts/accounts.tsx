// GET, POST /service-accounts: accounts of programs, each with one certificate, and the form for another one.

import { z } from '@hono/zod-openapi';
import type { AppError } from '@holdfast/kit/app-error';
import { isOwnServiceAccount, SERVICE_KINDS } from '@holdfast/kit/names';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { groupNames } from '../../../shared/http/schemas/people.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { channelNames } from '../../../shared/people/groups.ts';
import { type CreatedServiceAccount, createServiceAccount } from '../../../shared/people/service-accounts/create.ts';
import { listServiceAccounts } from '../../../shared/people/service-accounts/service-accounts.ts';
import { type Attempt, attempt, faultOf, type Form, formOf, parsed } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Checks, Field } from '../../pages/parts/field.tsx';
import { Missing, Problem } from '../../pages/parts/notice.tsx';
import { pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { clockOf } from '../../pages/parts/time.tsx';
import { Ends, NewKey, AccountStatusBadge } from './account.tsx';

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

/** The form for a service account: its name, what it may do, where it talks. */
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

const PATH = '/service-accounts';
const PAGE_SIZE = 50;
const DEMAND = { area: 'people' } as const;

const wantedSchema = z.object({ name: z.string().max(1000), kind: z.enum(SERVICE_KINDS), groups: groupNames });

/** Adds the routes of this file. */
export function serviceAccountsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'viewer', ...DEMAND }, function listAll(c) {
    return showAccounts(c, deps);
  });

  pages.post(PATH, { access: 'admin', ...DEMAND }, async function create(c) {
    const form = await formOf(c);
    const input = { name: form.text('name'), kind: form.text('kind'), groups: form.all('groups') };
    const tried = await attempt(() => createServiceAccount(actingIn(c, deps), parsed(wantedSchema, input)));
    const { refused } = tried;
    if (refused !== undefined) return showAccounts(c, deps, { form, refused });
    const { id, p12, admin_right: right } = tried.done;
    const done = right === 'pending' ? 'pending' : 'made';
    return p12 === undefined ? goTo(c, `${PATH}/${id}?done=${done}`) : showKey(c, deps, { ...tried.done, p12 });
  });
}

interface Retry {
  form?: Form;
  refused?: AppError;
}

async function showAccounts(c: PageContext, deps: Deps, { form, refused }: Retry = {}): Promise<Response> {
  const page = pageNumber(c.req.query('page'));
  const mayChange = isAdmin(c);
  const [list, channels] = await Promise.all([
    listServiceAccounts(deps, { page, pageSize: PAGE_SIZE }),
    mayChange ? attempt(() => channelNames(deps)) : { done: [] },
  ]);
  const { results, count, certs_error: missing } = list;
  const clock = clockOf(deps);
  const rows = results.map((account) => [
    <a href={`${PATH}/${account.id}`}>
      <bdi>{account.username}</bdi>
    </a>,
    isOwnServiceAccount(account.username) ? 'part of the stack' : account.kind,
    account.groups.length === 0 ? <span class="fine">none</span> : account.groups.join(', '),
    <AccountStatusBadge account={account} />,
    <Ends account={account} clock={clock} />,
  ]);
  const columns = [
    { label: 'Account' },
    { label: 'Kind' },
    { label: 'Groups' },
    { label: 'State' },
    { label: 'Certificate ends' },
  ];
  const body = (
    <>
      <Problem error={refused} />
      {missing === undefined ? null : (
        <Missing>Certificates are shown as Holdfast has written them down, which may not be all: {missing}</Missing>
      )}
      <p>
        A program that speaks with the core (a sensor, a gateway, a bot) gets an account of its own: no password, one
        certificate.
      </p>
      <Table caption="Service accounts" columns={columns} rows={rows} />
      <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={count} />
      {mayChange ? <ServiceAccountForm form={form} refused={refused} channels={channels} /> : null}
    </>
  );
  return framed(c, deps, { title: 'Service accounts', current: 'service-accounts', body, refused });
}

/** Where keys are not kept this answer is the only place that has it. */
function showKey(c: PageContext, deps: Deps, account: CreatedServiceAccount & { p12: string }): Promise<Response> {
  return framed(c, deps, {
    title: `${account.username} is made`,
    current: 'service-accounts',
    body: <NewKey account={account} />,
    status: 201,
  });
}
