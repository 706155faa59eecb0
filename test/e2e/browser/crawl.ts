// Follows every link from the first page as a signed-in person. Of many pages of one kind it visits the first few.

/** Where one is, and as whom. */
export interface Place {
  /** Without a slash at the end. */
  base: string;
  cookie: string;
}

export interface Visited {
  path: string;
  kind: string;
  status: number;
  html: string;
}

/** Below these stands a name. */
const OF_NAMES =
  /^\/(health|people|groups|missions|plugins|devices|certificates|service-accounts|jobs|tokens|alerts|lockouts)$/;
const LITERAL = /^[a-z][a-z-]{1,23}$/;

/** The path with what is somebody's own left out, and the names of its query. */
export function kindOf(path: string): string {
  const { pathname, searchParams } = new URL(path, 'http://stack');
  let kind = '';
  for (const segment of pathname.split('/').slice(1))
    kind +=
      LITERAL.test(segment) && (segment === 'new' || !OF_NAMES.test(kind))
        ? `/${segment}`
        : segment === ''
          ? '/'
          : '/{}';
  const names = [...new Set(searchParams.keys())].toSorted();
  return names.length === 0 ? kind : `${kind}?${names.join('&')}`;
}

/** Where the links of a page lead, without those out of it, to the API, and to files. */
export function linksOf(html: string): string[] {
  const links = [...html.matchAll(/<a\b[^>]*?\shref="([^"]*)"/g)].map(([, href = '']) => href.replaceAll('&amp;', '&'));
  return links
    .filter((href) => href.startsWith('/') || href.startsWith('?'))
    .map((href) => href.split('#')[0] ?? '')
    .filter(
      (href) =>
        href !== '' && !/^\/(api|metrics|assets)\b|\/download\b|\/package\b|^\/certificates\/(ca|crl)\.pem$/.test(href),
    );
}

export async function pageOf({ base, cookie }: Place, path: string): Promise<Visited> {
  const answer = await fetch(`${base}${path}`, { headers: { cookie, accept: 'text/html' }, redirect: 'manual' });
  return { path, kind: kindOf(path), status: answer.status, html: await answer.text() };
}

export async function crawl(place: Place, maxOfAKind = 20): Promise<Visited[]> {
  const visited: Visited[] = [];
  const seen = new Set(['/']);
  const ofKind = new Map<string, number>();
  const waiting = ['/'];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const page = await pageOf(place, path);
    visited.push(page);
    for (const link of linksOf(page.html)) {
      const { pathname, search } = new URL(link, `http://stack${path}`);
      const next = pathname + search;
      const kind = kindOf(next);
      const before = ofKind.get(kind) ?? 0;
      if (seen.has(next) || (kind.includes('{}') || kind.includes('?') ? before >= maxOfAKind : false)) continue;
      seen.add(next);
      ofKind.set(kind, before + 1);
      waiting.push(next);
    }
  }
  return visited;
}
