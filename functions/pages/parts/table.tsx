// Lists: a table, whose rows become cards on a phone; pages of it; and what to do when there is nothing in it. The roles stay
// when the style makes cards of the rows: without them a browser would forget that it is a table.

import type { Child } from 'hono/jsx';

export interface Column {
  label: string;
  numeric?: boolean;
  /** The label is read aloud but not shown: for buttons. */
  silent?: boolean;
}

interface TableProps {
  /** What it lists; read aloud. */
  caption: string;
  columns: readonly Column[];
  /** Of each row one cell per column; the first one names the row. */
  rows: readonly (readonly Child[])[];
}

export function Table({ caption, columns, rows }: TableProps) {
  return (
    <div class="table" role="region" aria-label={caption} tabindex={0}>
      <table role="table">
        <caption class="silent">{caption}</caption>
        <thead>
          <tr role="row">
            {columns.map(({ label, numeric, silent }) => (
              <th scope="col" role="columnheader" class={numeric === true ? 'numeric' : undefined}>
                {silent === true ? <span class="silent">{label}</span> : label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells) => (
            <tr role="row">
              {cells.map((cell, at) => {
                const { label = '', numeric = false, silent = false } = columns[at] ?? {};
                const kind = numeric ? 'numeric' : undefined;
                if (at === 0)
                  return (
                    <th scope="row" role="rowheader">
                      {cell}
                    </th>
                  );
                return (
                  <td role="cell" class={kind} data-label={silent ? undefined : label}>
                    {cell}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface PagerProps {
  /** Of the address that shows page 1, with its query. */
  url: URL;
  page: number;
  pageSize: number;
  count: number;
}

/** Which part of the list this is, and the way to the others. */
export function Pager({ url, page, pageSize, count }: PagerProps) {
  const last = Math.max(1, Math.ceil(count / pageSize));
  if (last === 1 && page === 1) return <p class="pager fine">{count === 1 ? '1 in all' : `${count} in all`}</p>;
  const first = (page - 1) * pageSize + 1;
  return (
    <nav class="pager" aria-label="Pages of the list">
      {page > 1 ? (
        <a class="button" rel="prev" href={at(url, Math.min(page - 1, last))}>
          Previous
        </a>
      ) : null}
      <span class="fine">
        {first > count ? `none of ${count}` : `${first} to ${Math.min(count, page * pageSize)} of ${count}`}
      </span>
      {page < last ? (
        <a class="button" rel="next" href={at(url, page + 1)}>
          Next
        </a>
      ) : null}
    </nav>
  );
}

function at(url: URL, page: number): string {
  const query = new URLSearchParams(url.search);
  query.delete('done');
  query.set('page', String(page));
  return `${url.pathname}?${query.toString()}`;
}

/** The page of a list that the address asks for: a whole number from 1. */
export function pageNumber(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,6}$/.test(text) ? Number(text) : 1;
}

/** Nothing to list: why, and what to do. */
export function Empty({ children }: { children: Child }) {
  return <div class="empty">{children}</div>;
}
