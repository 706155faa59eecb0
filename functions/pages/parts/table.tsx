// Tables, their pager and empty states. The rows become cards on narrow screens, where browsers
// drop the table semantics: the explicit roles keep them.

import type { Child } from 'hono/jsx';

export interface Column {
  label: string;
  numeric?: boolean;
  /** Only screen readers get the label: for columns of buttons. */
  silent?: boolean;
}

interface TableProps {
  /** For screen readers. */
  caption: string;
  columns: readonly Column[];
  /** One cell per column. The first cell names the row. */
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
  /** The address of the list, with its query. */
  url: URL;
  page: number;
  pageSize: number;
  count: number;
}

/** The position in the list, with links to the previous and next page. */
export function Pager({ url, page, pageSize, count }: PagerProps) {
  const last = Math.max(1, Math.ceil(count / pageSize));
  if (last === 1 && page === 1) return <p class="pager fine">{count} total</p>;
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

/** The page number in the address: a whole number from 1. Default: 1. */
export function pageNumber(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d{0,6}$/.test(text) ? Number(text) : 1;
}

/** An empty state: what is missing and what to do. */
export function Empty({ children }: { children: Child }) {
  return <div class="empty">{children}</div>;
}
