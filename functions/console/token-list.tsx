// The API tokens that are valid, and how each is revoked.

import type { Scope } from '../../shared/domain/principal.ts';
import type { ApiToken } from '../../shared/ports/sign-ins.ts';
import type { Clock } from '../pages/clock.ts';
import { Confirm } from '../pages/parts/confirm.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';
import { Empty, Pager, Table } from '../pages/parts/table.tsx';
import { When } from '../pages/parts/time.tsx';

const SOON_MS = 7 * 86_400_000;
const SHORT: Record<Scope, string> = { read: 'read', users: 'people', admin: 'everything of its owner' };

interface TokenListProps {
  tokens: ApiToken[];
  count: number;
  page: number;
  pageSize: number;
  url: URL;
  clock: Clock;
}

export function TokenList({ tokens, count, page, pageSize, url, clock }: TokenListProps) {
  if (count === 0)
    return (
      <Empty>
        <p>No program has a token.</p>
        <p>Make one below when a program of yours is to use the API: a backup, a dashboard, a roster import.</p>
      </Empty>
    );
  const columns = [
    { label: 'Token' },
    { label: 'May' },
    { label: 'Acts for' },
    { label: 'Made' },
    { label: 'Ends' },
    { label: 'Revoke', silent: true },
  ];
  const rows = tokens.map((token) => [
    <bdi>{token.name}</bdi>,
    SHORT[token.scope],
    <bdi>{token.owner}</bdi>,
    <When at={token.createdAt} clock={clock} />,
    <Ends at={token.expiresAt} clock={clock} />,
    <Revoke token={token} />,
  ]);
  return (
    <>
      <Table caption="API tokens" columns={columns} rows={rows} />
      <Pager url={url} page={page} pageSize={pageSize} count={count} />
    </>
  );
}

function Ends({ at, clock }: { at: string; clock: Clock }) {
  const soon = Date.parse(at) - clock.now.getTime() < SOON_MS;
  return (
    <div>
      <When at={at} clock={clock} relative /> {soon ? <StatusBadge status="warning">Ends soon</StatusBadge> : null}
    </div>
  );
}

function Revoke({ token: { id, name, owner } }: { token: ApiToken }) {
  return (
    <Confirm id={`revoke-${id}`} label="Revoke…" of={name} action={`/tokens/${id}/revoke`} button={`Revoke ${name}`}>
      <p>
        The program that uses it is refused from the next request on, and needs a new token. {owner} and everybody else
        stay signed in. This cannot be taken back.
      </p>
    </Confirm>
  );
}
