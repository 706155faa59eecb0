// Rows as one text: the cheapest way into the database here, per row less than half of what a parameter for each value costs.
// Fields and rows end with control characters that no XML has, so that nothing needs an escape.

const FIELD = '\u001F';
const ROW = '\u001D';
const NOTHING = '\u001E';
// oxlint-disable-next-line no-control-regex -- NUL, which PostgreSQL does not take, and the three above
const TAKEN = /[\u0000\u001D-\u001F]/g;

/** How SQL takes them apart: `string_to_array(row, FIELD, NOTHING)` of each `string_to_table(text, ROW)`. */
export const SEPARATORS = { field: FIELD, row: ROW, nothing: NOTHING } as const;

export type Field = string | number | null | undefined;

/** Every row has the same number of fields. A character that separates becomes U+FFFD, as a half of a pair does on its way. */
export function fieldRows(rows: Iterable<readonly Field[]>): string {
  let text = '';
  let isFirst = true;
  for (const row of rows) {
    if (!isFirst) text += ROW;
    isFirst = false;
    for (let at = 0; at < row.length; at++) {
      if (at > 0) text += FIELD;
      text += fieldText(row[at]);
    }
  }
  return text;
}

function fieldText(field: Field): string | number {
  if (field === undefined || field === null) return NOTHING;
  if (typeof field === 'number') return field;
  return field.search(TAKEN) < 0 ? field : field.replace(TAKEN, '\uFFFD');
}
