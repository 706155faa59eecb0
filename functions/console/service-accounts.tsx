// GET, POST /service-accounts: accounts of programs, each with one certificate, and the form for another one.

import type { AppError } from '../../shared/domain/app-error.ts';
import { isOwnServiceAccount, SERVICE_KINDS } from '../../shared/domain/service-accounts.ts';
import { actingIn } from '../../shared/http/acting.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { goTo } from '../../shared/http/page.tsx';
import { groupNames } from '../../shared/http/people-schemas.ts';
import { type CreatedServiceAccount, createServiceAccount } from '../../shared/verbs/create-service-account.ts';
import { listServiceAccounts } from '../../shared/verbs/service-accounts.ts';
import { z } from '@hono/zod-openapi';
import { clockOf } from '../pages/clock.ts';
import { attempt, type Form, formOf, parsed } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Missing, Problem } from '../pages/parts/notice.tsx';
import { Pager, pageNumber, Table } from '../pages/parts/table.tsx';
import { Ends, NewKey, StandingBadge } from './service-account-parts.tsx';
import { ServiceAccountForm } from './service-account-form.tsx';
import { channelNames } from '../../shared/verbs/list-channels.ts';

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
    const wish = { name: form.text('name'), kind: form.text('kind'), groups: form.all('groups') };
    const tried = await attempt(() => createServiceAccount(actingIn(c, deps), parsed(wantedSchema, wish)));
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
    <StandingBadge account={account} />,
    <Ends certificate={account.certificate} clock={clock} />,
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
