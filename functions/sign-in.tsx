// GET, POST /sign-in and POST /sign-out: the pages that open and end a session.

import type { Context } from 'hono';
import type { Child } from 'hono/jsx';
import { AppError } from '@holdfast/kit/app-error';
import { oneLine, shortened } from '@holdfast/kit/text';
import { HOUR_MS } from '@holdfast/kit/time';
import { audited } from '../shared/audit/audited.ts';
import type { Actor } from '../shared/audit/port.ts';
import {
  type App,
  type AppEnv,
  clearSessionCookie,
  givenSessionCookie,
  returnPath,
  SESSION_HOURS,
  setSessionCookie,
} from '../shared/http/context.ts';
import { csrfGuard } from '../shared/http/csrf-guard.ts';
import type { Deps } from '../shared/http/deps.ts';
import { goTo, sendPage } from '../shared/http/page.tsx';
import { endSessionUnlessEnded } from '../shared/sign-in/tokens.ts';
import { Field } from './pages/parts/field.tsx';
import { clockOf, Countdown } from './pages/parts/time.tsx';

const MAX_CHARACTERS = 1024;

/** Notices by the value of `?done=`. */
const NOTICES: Readonly<Record<string, string>> = {
  'signed-out': 'You are signed out.',
  password: 'Password changed. All sessions have ended. Sign in with your new password.',
  sessions: 'You are signed out everywhere.',
  session: 'You ended this session. Sign in again to continue.',
};
const ENDED = 'Your session has ended. Sign in again to continue.';

interface Form {
  username: string;
  password: string;
  returnTo: string;
}

/** Adds the routes of this file. */
export function signInFunction(app: App, deps: Deps): void {
  const guard = csrfGuard('form');

  app.get('/sign-in', async function showForm(c) {
    const returnTo = returnPath(c.req.query('return_to'));
    const cookie = givenSessionCookie(c);
    if (cookie !== undefined && (await deps.authenticator.session(cookie)) !== undefined) return goTo(c, returnTo);
    const done = c.req.query('done') ?? '';
    const message = Object.hasOwn(NOTICES, done) ? NOTICES[done] : cookie === undefined ? undefined : ENDED;
    return sendForm(c, deps, { returnTo, message });
  });

  app.post('/sign-in', guard, async function signIn(c) {
    const { username, password, returnTo } = await formOf(c);
    const kept = { returnTo, username };
    if (username === '' || password === '')
      return sendForm(c, deps, { ...kept, fault: 'Enter your username and password.' });
    const epoch = await deps.signIns.epoch(username);
    const { clientAddress: address, requestId } = c.env;
    const result = await deps.authenticator.password({ username, password, address, base: 'web', requestId });
    if (result.kind === 'locked') return sendLocked(c, deps, kept, result.retryAfterSeconds);
    if (result.kind === 'refused') return sendForm(c, deps, { ...kept, fault: <WrongPassword /> });
    const { principal } = result;
    if (principal.by.kind === 'break-glass') throw emergencyOnly();
    const actor = { username: principal.username, address, requestId };
    await endCurrentSession(c, deps, actor);
    setSessionCookie(c, await openSession(c, deps, actor, epoch));
    return goTo(c, returnTo);
  });

  app.post('/sign-out', guard, async function signOut(c) {
    clearSessionCookie(c);
    await endCurrentSession(c, deps);
    return goTo(c, '/sign-in?done=signed-out');
  });
}

/**
 * Opens a session and returns its cookie value. The session is void when the person's access
 * changed after `epoch` was read.
 */
async function openSession(c: Context<AppEnv>, deps: Deps, actor: Actor, epoch: number): Promise<string> {
  const { username, address } = actor;
  const id = crypto.randomUUID();
  const expiresAt = new Date(deps.now().getTime() + SESSION_HOURS * HOUR_MS).toISOString();
  const userAgent = shortened(oneLine(c.req.header('user-agent') ?? ''), 200);
  const auditedAction = { actor, action: 'session.create', target: username, detail: { id, expires_at: expiresAt } };
  const { text } = await audited(deps, auditedAction, () =>
    deps.signIns.openSession({ id, epoch, username, expiresAt, address, userAgent }),
  );
  return text;
}

/** Ends the session of the request, if any. The default actor is the person of that session. */
async function endCurrentSession(c: Context<AppEnv>, deps: Deps, actor?: Actor): Promise<void> {
  const cookie = givenSessionCookie(c);
  const session = cookie === undefined ? undefined : await deps.signIns.recognize('session', cookie);
  if (session === undefined) return;
  const { username } = session;
  const { clientAddress: address, requestId } = c.env;
  await endSessionUnlessEnded(deps, actor ?? { username, address, requestId }, session);
}

async function formOf(c: Context<AppEnv>): Promise<Form> {
  const fields = new URLSearchParams(await c.req.text());
  const username = (fields.get('username') ?? '').trim();
  const password = fields.get('password') ?? '';
  if (username.length > MAX_CHARACTERS || password.length > MAX_CHARACTERS)
    throw new AppError('invalid', `Username and password must each have at most ${MAX_CHARACTERS} characters.`);
  return { username, password, returnTo: returnPath(fields.get('return_to') ?? undefined) };
}

function emergencyOnly(): AppError {
  const text =
    "Can't sign in: the directory is unavailable. Try again in a minute. Until then, webadmin can only read health, metrics and alerts, with username and password over HTTP Basic.";
  return new AppError('unavailable', text);
}

interface FormView {
  returnTo: string;
  username?: string;
  /** A notice above the form. */
  message?: string | undefined;
  /** Why the sign-in was refused. */
  fault?: Child;
  status?: 401 | 429;
}

/** Shows the form again with a countdown until the lockout ends. */
function sendLocked(c: Context<AppEnv>, deps: Deps, kept: FormView, seconds: number): Promise<Response> {
  const clock = clockOf(deps);
  const until = new Date(clock.now.getTime() + seconds * 1000).toISOString();
  c.header('Retry-After', String(seconds));
  const fault = (
    <>
      <p>Your address is locked out after too many wrong passwords.</p>
      <p class="figure">
        <Countdown until={until} clock={clock} over="You can sign in again now." />
      </p>
      <p>
        Can't wait? An administrator elsewhere can unlock {c.env.clientAddress} in the console under Lockouts. On the
        server, run: <code>./scripts/unlock.sh {c.env.clientAddress}</code>
      </p>
    </>
  );
  return sendForm(c, deps, { ...kept, fault, status: 429 });
}

/**
 * The same text for every username and attempt: the attempts left would reveal what others at this
 * address do.
 */
function WrongPassword() {
  return (
    <>
      <p>Wrong username or password.</p>
      <p>
        Check capital letters and the keyboard language. After 10 wrong passwords in 5 minutes, this address is locked
        out for 15 minutes. An administrator can set a new password.
      </p>
    </>
  );
}

function sendForm(c: Context<AppEnv>, { place }: Deps, view: FormView): Promise<Response> {
  const { returnTo, username = '', message, fault, status = 401 } = view;
  const body = (
    <>
      <p class="fine">
        {c.env.face === 'portal' ? 'Holdfast' : 'Holdfast console'} on <strong>{place.name}</strong>
      </p>
      {message === undefined || fault !== undefined ? null : (
        <p class="notice" role="status">
          {message}
        </p>
      )}
      {fault === undefined ? null : (
        <div class="notice bad" role="alert">
          {fault}
        </div>
      )}
      <form method="post" action="/sign-in">
        <input type="hidden" name="return_to" value={returnTo} />
        <Field
          name="username"
          label="Username"
          value={username}
          autocomplete="username"
          plain
          required
          autofocus={username === ''}
        />
        <Field
          name="password"
          label="Password"
          type="password"
          autocomplete="current-password"
          required
          autofocus={username !== ''}
        />
        <button type="submit">Sign in</button>
      </form>
    </>
  );
  return sendPage(c, { title: 'Sign in', body }, fault === undefined ? 200 : status);
}
