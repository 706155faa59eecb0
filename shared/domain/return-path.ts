// Where a person goes after signing in: only ever to a path of ours.

const MOST_CHARACTERS = 2000;
/** Anything: only the path is kept. */
const HERE = 'http://here.invalid';

/**
 * The path, with query and fragment, that this text stands for; `/` for everything that a browser might take for another
 * site, and for the two addresses that would lead in a circle.
 */
export function returnPath(text: string | undefined): string {
  if (text === undefined || text.length > MOST_CHARACTERS) return '/';
  if (!/^\/(?![/\\])/.test(text) || /[\p{Cc}\\]/u.test(text) || !URL.canParse(text, HERE)) return '/';
  const { origin, pathname, search, hash } = new URL(text, HERE);
  if (origin !== HERE || pathname.startsWith('//') || /^\/sign-(in|out)\/*$/i.test(pathname)) return '/';
  return pathname + search + hash;
}
