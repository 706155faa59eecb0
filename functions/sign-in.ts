// The pages of signing in and out: a form, a cookie, no script. They fail as pages too.

import type { Context } from 'hono';
import { html } from 'hono/html';
import { AppError } from '../shared/domain/app-error.ts';
import { oneLine, shortened } from '../shared/domain/plain-text.ts';
import { returnPath } from '../shared/domain/return-path.ts';
import type { Deps } from '../shared/http/deps.ts';
import type { App, AppEnv } from '../shared/http/env.ts';
import { goTo, sendPage } from '../shared/http/page.tsx';
import {
  clearSessionCookie,
  givenSessionCookie,
  SESSION_HOURS,
  setSessionCookie,
} from '../shared/http/session-cookie.ts';
import { lockedOut } from '../shared/http/sign-in.ts';
import { unsafeGuard } from '../shared/http/unsafe-guard.ts';
import type { Actor } from '../shared/ports/audit.ts';
import { audited } from '../shared/verbs/audited.ts';
import { endSessionUnlessEnded } from '../shared/verbs/end-session.ts';

const HOUR_MS = 3_600_000;
/** A password has so many bytes at most. */
const MOST_CHARACTERS = 1024;

interface Form {
  username: string;
  password: string;
  returnTo: string;
}

/** Adds the routes of this file. */
export function signInFunction(app: App, deps: Deps): void {
  const guard = unsafeGuard('form');

  app.get('/sign-in', async function showForm(c) {
    const returnTo = returnPath(c.req.query('return_to'));
    const cookie = givenSessionCookie(c);
    if (cookie !== undefined && (await deps.doors.session(cookie)) !== undefined) return goTo(c, returnTo);
    return sendForm(c, deps, { returnTo });
  });

  app.post('/sign-in', guard, async function signIn(c) {
    const { username, password, returnTo } = await formOf(c);
    if (username === '' || password === '')
      return sendForm(c, deps, { returnTo, username, notice: 'Enter your name and your password.' });
    const epoch = await deps.signIns.epoch(username);
    const { clientAddress: address, requestId } = c.env;
    const entrance = await deps.doors.password({ username, password, address, base: 'web', requestId });
    if (entrance.kind === 'locked') throw lockedOut(entrance.retryAfterSeconds);
    if (entrance.kind === 'refused')
      return sendForm(c, deps, { returnTo, username, notice: 'This name and password do not belong together.' });
    const { principal } = entrance;
    if (principal.by.kind === 'break-glass') throw emergencyOnly();
    const actor = { username: principal.username, address, requestId };
    await endEarlier(c, deps, actor);
    setSessionCookie(c, await open(c, deps, actor, epoch));
    return goTo(c, returnTo);
  });

  app.post('/sign-out', guard, async function signOut(c) {
    clearSessionCookie(c);
    await endEarlier(c, deps);
    return goTo(c, '/sign-in');
  });
}

/** A new session; resolves with its text. It is void when the person's right to come in changed after `epoch` was read. */
async function open(c: Context<AppEnv>, deps: Deps, actor: Actor, epoch: number): Promise<string> {
  const { username, address } = actor;
  const id = crypto.randomUUID();
  const expiresAt = new Date(deps.now().getTime() + SESSION_HOURS * HOUR_MS).toISOString();
  const userAgent = shortened(oneLine(c.req.header('user-agent') ?? ''), 200);
  const deed = { actor, action: 'session.create', target: username, detail: { id, expires_at: expiresAt } };
  const { text } = await audited(deps, deed, () =>
    deps.signIns.openSession({ id, epoch, username, expiresAt, address, userAgent }),
  );
  return text;
}

/** Ends the session that the request came with, if any; by default its own person does. */
async function endEarlier(c: Context<AppEnv>, deps: Deps, actor?: Actor): Promise<void> {
  const cookie = givenSessionCookie(c);
  const session = cookie === undefined ? undefined : await deps.signIns.recognise('session', cookie);
  if (session === undefined) return;
  const { username } = session;
  const { clientAddress: address, requestId } = c.env;
  await endSessionUnlessEnded(deps, actor ?? { username, address, requestId }, session);
}

async function formOf(c: Context<AppEnv>): Promise<Form> {
  const fields = new URLSearchParams(await c.req.text());
  const username = (fields.get('username') ?? '').trim();
  const password = fields.get('password') ?? '';
  if (username.length > MOST_CHARACTERS || password.length > MOST_CHARACTERS)
    throw new AppError('invalid', `A name and a password have at most ${MOST_CHARACTERS} characters.`);
  return { username, password, returnTo: returnPath(fields.get('return_to') ?? undefined) };
}

function emergencyOnly(): AppError {
  const text =
    'The directory does not answer, so nobody can sign in here. Until it does, webadmin may read health, metrics and alerts with name and password by HTTP Basic, nothing else.';
  return new AppError('unavailable', text);
}

interface Shown {
  returnTo: string;
  username?: string;
  /** Why the form is shown again. */
  notice?: string;
}

async function sendForm(c: Context<AppEnv>, { place }: Deps, { returnTo, username = '', notice }: Shown) {
  const focus = notice === undefined ? html`autofocus` : html`autofocus aria-describedby="notice"`;
  const body = html`<p>Holdfast on ${place.name}</p>
    ${notice === undefined ? '' : html`<p role="alert" id="notice">${notice}</p>`}
    <form method="post" action="/sign-in">
      <input type="hidden" name="return_to" value="${returnTo}" />
      <label for="username">Name</label>
      <input
        id="username"
        name="username"
        type="text"
        value="${username}"
        autocomplete="username"
        autocapitalize="none"
        spellcheck="false"
        required
        ${username === '' ? focus : ''}
      />
      <label for="password">Password</label>
      <input
        id="password"
        name="password"
        type="password"
        autocomplete="current-password"
        required
        ${username === '' ? '' : focus}
      />
      <button type="submit">Sign in</button>
    </form>`;
  return sendPage(c, { title: 'Sign in', body }, notice === undefined ? 200 : 401);
}
