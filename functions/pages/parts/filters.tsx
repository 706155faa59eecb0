// A form that asks the same page for less. It is folded until something is filtered, and says what is.

import type { Child } from 'hono/jsx';

interface FiltersProps {
  /** The path of the page, without a query. */
  action: string;
  /** What is filtered just now, in words. */
  set: readonly string[];
  /** Another way to have the list: the address of a CSV. */
  csv?: string;
  /** The fields. */
  children: Child;
}

export function Filters({ action, set, csv, children }: FiltersProps) {
  return (
    <div class="filters">
      <details open={set.length > 0}>
        <summary class="button">{set.length === 0 ? 'Filter' : `Filter: ${set.join(', ')}`}</summary>
        <form method="get" action={action}>
          <div class="fields">{children}</div>
          <p class="row">
            <button type="submit">Show</button>
            {set.length === 0 ? null : (
              <a class="button" href={action}>
                Show everything
              </a>
            )}
          </p>
        </form>
      </details>
      {csv === undefined ? null : (
        <a class="button" href={csv} download>
          Save as CSV
        </a>
      )}
    </div>
  );
}
