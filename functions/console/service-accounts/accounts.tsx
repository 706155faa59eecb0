// GET, POST /service-accounts: lists service accounts and adds one.

import { z } from '@hono/zod-openapi';
import type { AppError } from '@holdfast/kit/app-error';
import { isOwnServiceAccount, SERVICE_KINDS } from '@holdfast/kit/names';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { groupNames } from '../../../shared/http/schemas/people.ts';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { channelNames } from '../../../shared/people/groups.ts';
import { addServiceAccount, type CreatedServiceAccount } from '../../../shared/people/service-accounts/create.ts';
import { listServiceAccounts } from '../../../shared/people/service-accounts/service-accounts.ts';
import { type Attempt, attempt, faultOf, type Form, formOf, parsed } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Checks, Field } from '../../pages/parts/field.tsx';
import { Missing, Problem } from '../../pages/parts/notice.tsx';
import { pageNumber, Pager, Table } from '../../pages/parts/table.tsx';
import { clockOf } from '../../pages/parts/time.tsx';
import { AccountStatusBadge, CertificateExpiry, NewKey } from './account.tsx';

const KINDS = [
  { value: 'data', label: 'Data: sends and receives in its groups, like a device. Enough for almost everything' },
  {
    value: 'admin',
    label:
      "Admin: can also use the core's admin API. Anyone with its key can read and change all people, groups and messages there",
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
      <h2>Add service account</h2>
      <form method="post" action="/service-accounts" class="narrow">
        <Field
          name="name"
          label="Name"
          hint="Letters, digits and . _ - only. svc_ is added in front. The name of a deleted account restores it with a new certificate."
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
        <button type="submit">Add account</button>
      </form>
    </section>
  );
}

function Groups({ form, refused, channels }: ServiceAccountFormProps) {
  if (channels.refused !== undefined)
    return <Missing>Couldn't load the groups. {channels.refused.message} The account would be in no group.</Missing>;
  if (channels.done.length === 0)
    return (
      <Missing>
        No groups yet, so the account would see nothing. <a href="/groups">Add a group</a> first.
      </Missing>
    );
  return (
    <Checks
      legend="Groups"
      hint="The account sends and receives only in these groups. Without a group it sees nothing."
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
    const result = await attempt(() => addServiceAccount(actingIn(c, deps), parsed(wantedSchema, input)));
    const { refused } = result;
    if (refused !== undefined) return showAccounts(c, deps, { form, refused });
    const { id, p12, admin_right: right } = result.done;
    const done = right === 'pending' ? 'pending' : 'made';
    return p12 === undefined ? goTo(c, `${PATH}/${id}?done=${done}`) : showKey(c, deps, { ...result.done, p12 });
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
    <CertificateExpiry account={account} clock={clock} />,
  ]);
  const columns = [
    { label: 'Account' },
    { label: 'Kind' },
    { label: 'Groups' },
    { label: 'Status' },
    { label: 'Certificate expires' },
  ];
  const body = (
    <>
      <Problem error={refused} />
      {missing === undefined ? null : (
        <Missing>Certificates are shown as Holdfast recorded them and may be incomplete. {missing}</Missing>
      )}
      <p>
        Each program that connects to the core (a sensor, gateway or bot) needs its own account. It has one certificate
        and no password.
      </p>
      <Table caption="Service accounts" columns={columns} rows={rows} />
      <Pager url={new URL(c.req.url)} page={page} pageSize={PAGE_SIZE} count={count} />
      {mayChange ? <ServiceAccountForm form={form} refused={refused} channels={channels} /> : null}
    </>
  );
  return framed(c, deps, { title: 'Service accounts', current: 'service-accounts', body, refused });
}

/** Shows the key once. When keys are not stored, nothing else has it. */
function showKey(c: PageContext, deps: Deps, account: CreatedServiceAccount & { p12: string }): Promise<Response> {
  return framed(c, deps, {
    title: `${account.username} added`,
    current: 'service-accounts',
    body: <NewKey account={account} />,
    status: 201,
  });
}
