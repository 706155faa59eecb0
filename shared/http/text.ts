// Finds the commands in what a person is told to do, so that a page can show them as such and let
// them be copied. What is not surely a command stays text; put together, the parts are the remedy
// again.

export interface RemedyPart {
  kind: 'text' | 'command';
  text: string;
}

const PROGRAMS = [
  String.raw`sudo `,
  String.raw`docker `,
  String.raw`\./scripts/`,
  ...['curl', 'openssl', 'dig', 'df', 'du', 'cat', 'ldapsearch', 'grep', 'systemctl', 'git', 'psql'].map(
    (name) => `${name} `,
  ),
  String.raw`ip -brief `,
  String.raw`(?:resolvectl|timedatectl)\b`,
];
/** Where a sentence goes on behind a command. */
const WORDS =
  'with|and|or|shows?|says?|for|as|in|takes?|to|where|whether|by|that|the|is|then|names?|proposes|works|after|makes';
const BODY = String.raw`(?:"[^"]*"|'[^']*'|[^"'])*?`;
const END = String.raw`(?=[:;,)](?:\s|$|[.,;])|\.(?:\s|$)| \((?!["'])| (?:${WORDS})\b|$)`;
const SHELL = String.raw`(?<![\w/.-])(?:${PROGRAMS.join('|')})${BODY}${END}`;
const SQL = String.raw`(?<=: |with )(?:(?:SELECT|ALTER|DELETE FROM|VACUUM|CREATE|GRANT|REVOKE|DROP|CHECKPOINT)\b(?:'[^']*'|[^;'])*;(?: (?=[A-Z]{4,} ))?)+`;

export function remedyParts(remedy: string): RemedyPart[] {
  const parts: RemedyPart[] = [];
  let from = 0;
  for (const { 0: command, index } of remedy.matchAll(new RegExp(`${SQL}|${SHELL}`, 'g'))) {
    if (index > from) parts.push({ kind: 'text', text: remedy.slice(from, index) });
    parts.push({ kind: 'command', text: command });
    from = index + command.length;
  }
  if (from < remedy.length) parts.push({ kind: 'text', text: remedy.slice(from) });
  return parts;
}

const GOES_ON = /(data-(?:left|away)=")-?\d*("[^>]*>)[^<]*/g;

/**
 * A page without what the clock alone changes in it: what differs in nothing else is nothing new.
 * The HTML without the seconds of countdowns and distances, and without their words.
 */
export function withoutClock(html: string): string {
  return html.replaceAll(GOES_ON, '$1$2');
}
