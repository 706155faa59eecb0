// A form that asks the same page for less. It is folded, and says what is filtered.

import type { Child } from 'hono/jsx';

interface FiltersProps {
  /** The path of the page, without a query. */
  action: string;
  /** What is filtered just now, in words. */
  set: readonly string[];
  /** Another way to have the list: the address of a CSV. */
  csv?: string;
  /** Something in the fields is wrong: they are shown at once. */
  open?: boolean;
  /** The fields. */
  children: Child;
}

export function Filters({ action, set, csv, open = false, children }: FiltersProps) {
  return (
    <div class="filters">
      <details open={open}>
        <summary class="button">{set.length === 0 ? 'Filter' : `Filter: ${set.join(', ')}`}</summary>
        <form method="get" action={action}>
          <div class="fields">{children}</div>
          <p class="row">
            <button type="submit">Show</button>
          </p>
        </form>
      </details>
      {set.length === 0 ? null : (
        <a class="button" href={action}>
          Show all
        </a>
      )}
      {csv === undefined ? null : (
        <a class="button" href={csv} download>
          Save as CSV
        </a>
      )}
    </div>
  );
}
