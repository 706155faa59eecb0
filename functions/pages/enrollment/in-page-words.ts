// What the diagnosis says to programs, as a page says it: where the sentence names a route of the API, the page names the place
// that a person knows; and times are those of the stack.

import { type Clock, timeInZone } from '../clock.ts';

/** In this order: what is longer comes first. */
const WORDS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/Issue it anew: POST \/api\/\S+, and scan the new code\./g, 'Make a new code, and scan that one.'],
  [/ \((?:GET|PUT|POST|PATCH|DELETE) \/api\/[^()]*\)/g, ''],
  [/take it back \(DELETE\) and begin anew/g, 'take the code back and begin anew'],
  [/See GET \/api\/health\/(\w+), and ask again/g, 'See $1 on the overview, and check again'],
  [/See GET \/api\/health,/g, 'See the overview,'],
  [/GET \/api\/health\/(\w+) and GET \/api\/health\/(\w+) say/g, '$1 and $2 on the overview say'],
  [/GET \/api\/health\/(\w+)/g, '$1 on the overview'],
  [/GET \/api\/health\b/g, 'the overview'],
  [/gives a new expires_at, or null for none, with is_active true/g, 'gives the user a new end, or none'],
  [/Give a new expires_at, or null for none\./g, 'Give the user a new end, or none.'],
  [/a valid token/g, 'a valid code'],
  [/no valid token/g, 'no valid code'],
  [/there is a token/g, 'there is a code'],
  [/\bask again\b/gi, 'check again'],
];
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

export function inPageWords(text: string, { timeZone }: Pick<Clock, 'timeZone'>): string {
  const said = WORDS.reduce((before, [pattern, words]) => before.replaceAll(pattern, words), text);
  return said.replaceAll(TIME, (iso) => timeInZone(iso, timeZone));
}
