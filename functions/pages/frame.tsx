// Renders the frame of a signed-in page: navigation, account, title and footer.

import type { Child } from 'hono/jsx';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { AppError } from '@holdfast/kit/app-error';
import type { Face } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { sendDocument } from '../../shared/http/page.tsx';
import { statusOf } from '../../shared/http/problem.ts';
import { type Access, whyNot } from '../../shared/sign-in/rules.ts';
import { faceOf, type PageContext } from './page-routes.ts';
import { Icon } from './parts/notice.tsx';

/** One page in the navigation. */
export interface NavigationEntry {
  /** The name by which a page marks itself as the current one. */
  key: string;
  path: string;
  label: string;
  faces: readonly Face[];
  access: Exclude<Access, 'open'>;
  /** The faces whose narrow bottom bar shows it too. The others are reached through More. */
  inBar?: readonly Face[];
  /** The heading that it is listed under. */
  section?: string;
}

const CONSOLE = ['console'] as const;
const PORTAL = ['portal'] as const;
const BOTH = ['console', 'portal'] as const;

export const NAVIGATION: readonly NavigationEntry[] = [
  { key: 'overview', path: '/', label: 'Overview', faces: CONSOLE, access: 'viewer', inBar: CONSOLE },
  { key: 'home', path: '/', label: 'My devices', faces: PORTAL, access: 'own', inBar: PORTAL },
  { key: 'add-device', path: '/add-device', label: 'Add device', faces: PORTAL, access: 'own', inBar: PORTAL },
  { key: 'guides', path: '/guides', label: 'Guides', faces: PORTAL, access: 'own', inBar: PORTAL },
  { key: 'people', path: '/people', label: 'People', faces: BOTH, access: 'viewer', inBar: BOTH },
  { key: 'groups', path: '/groups', label: 'Groups', faces: BOTH, access: 'viewer' },
  { key: 'devices', path: '/devices', label: 'Devices', faces: CONSOLE, access: 'viewer', inBar: CONSOLE },
  { key: 'map', path: '/map', label: 'Map', faces: CONSOLE, access: 'viewer' },
  { key: 'missions', path: '/missions', label: 'Missions', faces: CONSOLE, access: 'viewer' },
  { key: 'profiles', path: '/profiles', label: 'Profiles', faces: CONSOLE, access: 'viewer' },
  { key: 'video', path: '/video', label: 'Video', faces: CONSOLE, access: 'viewer' },
  { key: 'certificates', path: '/certificates', label: 'Certificates', faces: CONSOLE, access: 'viewer' },
  { key: 'database', path: '/database', label: 'Database', faces: CONSOLE, access: 'viewer', inBar: CONSOLE },
  { key: 'backups', path: '/backups', label: 'Backups', faces: CONSOLE, access: 'viewer' },
  { key: 'alerts', path: '/alerts', label: 'Alerts', faces: CONSOLE, access: 'viewer' },
  {
    key: 'service-accounts',
    path: '/service-accounts',
    label: 'Service accounts',
    faces: CONSOLE,
    access: 'viewer',
    section: 'Server',
  },
  { key: 'simulation', path: '/simulation', label: 'Simulation', faces: CONSOLE, access: 'viewer', section: 'Server' },
  { key: 'plugins', path: '/plugins', label: 'Plugins', faces: CONSOLE, access: 'viewer', section: 'Server' },
  { key: 'tokens', path: '/tokens', label: 'API tokens', faces: CONSOLE, access: 'admin', section: 'Server' },
  { key: 'settings', path: '/settings', label: 'Settings', faces: CONSOLE, access: 'admin', section: 'Server' },
  { key: 'jobs', path: '/jobs', label: 'Jobs', faces: CONSOLE, access: 'viewer', section: 'History' },
  { key: 'logs', path: '/logs', label: 'Logs', faces: CONSOLE, access: 'admin', section: 'History' },
  { key: 'audit', path: '/audit', label: 'Audit', faces: CONSOLE, access: 'admin', section: 'History' },
  { key: 'lockouts', path: '/lockouts', label: 'Lockouts', faces: CONSOLE, access: 'admin', section: 'History' },
  {
    key: 'docs',
    path: '/docs/index.html',
    label: 'Documentation',
    faces: CONSOLE,
    access: 'viewer',
    section: 'Help',
  },
  {
    key: 'account',
    path: '/account',
    label: 'My account',
    faces: BOTH,
    access: 'own',
    section: 'Account',
    inBar: PORTAL,
  },
];

interface FramedPage {
  /** The h1, and the title of the window. */
  title: string;
  /** Replaces the title in the h1. */
  heading?: Child;
  /** The key of the navigation entry that the page belongs to. */
  current: string;
  body: Child;
  /** Buttons beside the h1. */
  actions?: Child;
  /** Why the request was refused. Sets the status of the page. */
  refused?: AppError | undefined;
  /** Default: the status of the refusal, or 200. */
  status?: ContentfulStatusCode;
  /** The origin of images that are not ours. */
  imagesFrom?: string;
}

/** The navigation entries that the signed-in person may open. */
export function entriesFor(c: PageContext): NavigationEntry[] {
  const face = faceOf(c);
  const principal = c.get('principal');
  return NAVIGATION.filter(
    ({ faces, access, key }) =>
      faces.includes(face) &&
      whyNot(principal, {
        access: face === 'portal' && ADMIN_IN_PORTAL.has(key) ? 'admin' : access,
        area: 'rest',
        safe: true,
      }) === undefined,
  );
}

/** Pages that the portal shows only to administrators. */
const ADMIN_IN_PORTAL: ReadonlySet<string> = new Set(['people', 'groups']);

/** Responds with the page in its frame. */
export function framed(c: PageContext, deps: Deps, page: FramedPage): Promise<Response> {
  const { title, heading = title, current, body, actions, refused, imagesFrom } = page;
  const { status = refused === undefined ? 200 : statusOf(refused.code) } = page;
  const face = faceOf(c);
  const entries = entriesFor(c);
  const { username } = c.get('principal');
  const content = (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <Mark />
          <span>
            <strong>{face === 'console' ? 'Holdfast' : deps.place.name}</strong>
            <small>{face === 'console' ? deps.place.name : 'Holdfast'}</small>
          </span>
        </a>
        <form method="post" action="/sign-out" class="who">
          <a href="/account" title="My account">
            <bdi>{username}</bdi>
          </a>
          <button type="submit" class="quiet">
            Sign out
          </button>
        </form>
      </header>
      <Navigation entries={entries} current={current} />
      <main id="content" tabindex={-1}>
        <div class="banner" id="live-banner" role="status"></div>
        <div class="head">
          <h1>{heading}</h1>
          {actions === undefined ? null : <div class="actions">{actions}</div>}
        </div>
        {body}
      </main>
      <Bar entries={entries.filter(({ inBar }) => inBar?.includes(face))} more={face === 'console'} current={current} />
      <footer class="foot">
        Holdfast {deps.release} on {deps.place.name}. Times are in {deps.timeZone}.
      </footer>
    </>
  );
  if (refused?.retryAfterSeconds !== undefined) c.header('Retry-After', String(refused.retryAfterSeconds));
  const sent = c.req.method === 'POST' ? ' sent' : '';
  return sendDocument(c, { title, content, kind: `framed ${face}${sent}`, imagesFrom }, status);
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <circle cx="16" cy="8" r="3.5" />
      <path d="M16 11.5V27M9 16h14M5 19c1 5 5.500 8 11 8s10-3 11-8" />
    </svg>
  );
}

interface NavigationProps {
  entries: NavigationEntry[];
  current: string;
}

/** The navigation beside the page on wide screens. */
function Navigation({ entries, current }: NavigationProps) {
  const sections = [...new Set(entries.map(({ section = '' }) => section))];
  return (
    <nav class="side" aria-label="Pages">
      {sections.map((section) => (
        <>
          {section === '' ? null : <p class="section">{section}</p>}
          <ul>
            {entries
              .filter((entry) => (entry.section ?? '') === section)
              .map((entry) => (
                <li>
                  <Link entry={entry} current={current} />
                </li>
              ))}
          </ul>
        </>
      ))}
    </nav>
  );
}

/** The navigation below the page on narrow screens. */
function Bar({ entries, current, more }: NavigationProps & { more: boolean }) {
  return (
    <nav class="bar" aria-label="Main pages">
      <ul>
        {entries.map((entry) => (
          <li>
            <Link entry={entry} current={current} withIcon />
          </li>
        ))}
        {more ? (
          <li>
            <a href="/more" aria-current={entries.some(({ key }) => key === current) ? undefined : 'true'}>
              <Icon name="more" />
              <span>More</span>
            </a>
          </li>
        ) : null}
      </ul>
    </nav>
  );
}

function Link({ entry, current, withIcon = false }: { entry: NavigationEntry; current: string; withIcon?: boolean }) {
  const { path, label, key } = entry;
  return (
    <a href={path} aria-current={key === current ? 'page' : undefined}>
      {withIcon ? <Icon name={key} /> : null}
      <span>{label}</span>
    </a>
  );
}
