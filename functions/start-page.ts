// GET /: who is signed in, what that allows, and where to go from here.

import { html } from 'hono/html';
import type { Role } from '../shared/domain/principal.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App } from '../shared/http/env.ts';
import { goTo, sendPage } from '../shared/http/page.ts';
import { givenSessionCookie } from '../shared/http/session-cookie.ts';

const RIGHTS: Record<Role, string> = {
  admin: 'You are an administrator: you may do everything.',
  viewer: 'You are a viewer: you may read everything but settings, logs and the audit log.',
  none: 'You have no role here: you see only what is your own.',
};

/** Adds the route of this file. */
export function startPageFunction(app: App, deps: Deps): void {
  app.get('/', async function showStart(c) {
    const cookie = givenSessionCookie(c);
    const principal = cookie === undefined ? undefined : await deps.doors.session(cookie);
    if (principal === undefined) return goTo(c, '/sign-in?return_to=/');
    const { username, role } = principal;
    const links = html`<li><a href="/api/docs">The API, to read and to try</a></li>
      <li><a href="/api/health">Health of every part, as JSON</a></li>`;
    const body = html`<p>You are signed in as <strong>${username}</strong>. ${RIGHTS[role]}</p>
      <ul>
        ${role === 'none' ? '' : links}
        <li><a href="/api/sessions">Where you are signed in, as JSON</a></li>
      </ul>
      <form method="post" action="/sign-out"><button type="submit">Sign out</button></form>`;
    return sendPage(c, { title: `Holdfast on ${deps.place.name}`, body });
  });
}
