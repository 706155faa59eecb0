// The pages of signing in and out: a form, a cookie, and sentences that say why one is here. They fail as pages too.

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

/** A password has so many bytes at most. */
const MAX_CHARACTERS = 1024;

/** Why somebody is here who was in before, by `?done=`. */
const SENTENCES: Readonly<Record<string, string>> = {
  'signed-out': 'You are signed out.',
  password: 'Your password is changed, and every session has ended. Sign in with the new one.',
  sessions: 'All of your sessions have ended.',
  session: 'The session that you were in has ended.',
};
const ENDED = 'Your session has ended. Sign in again to go on.';

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
    const message = Object.hasOwn(SENTENCES, done) ? SENTENCES[done] : cookie === undefined ? undefined : ENDED;
    return sendForm(c, deps, { returnTo, message });
  });

  app.post('/sign-in', guard, async function signIn(c) {
    const { username, password, returnTo } = await formOf(c);
    const again = { returnTo, username };
    if (username === '' || password === '')
      return sendForm(c, deps, { ...again, fault: 'Enter your name and your password.' });
    const epoch = await deps.signIns.epoch(username);
    const { clientAddress: address, requestId } = c.env;
    const entrance = await deps.authenticator.password({ username, password, address, base: 'web', requestId });
    if (entrance.kind === 'locked') return sendLocked(c, deps, again, entrance.retryAfterSeconds);
    if (entrance.kind === 'refused') return sendForm(c, deps, { ...again, fault: <WrongPassword /> });
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
    return goTo(c, '/sign-in?done=signed-out');
  });
}

/** A new session; resolves with its text. It is void when the person's right to come in changed after `epoch` was read. */
async function open(c: Context<AppEnv>, deps: Deps, actor: Actor, epoch: number): Promise<string> {
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
  if (username.length > MAX_CHARACTERS || password.length > MAX_CHARACTERS)
    throw new AppError('invalid', `A name and a password have at most ${MAX_CHARACTERS} characters.`);
  return { username, password, returnTo: returnPath(fields.get('return_to') ?? undefined) };
}

function emergencyOnly(): AppError {
  const text =
    'The directory does not answer, so nobody can sign in here. Until it does, webadmin may read health, metrics and alerts with name and password by HTTP Basic, nothing else.';
  return new AppError('unavailable', text);
}

interface View {
  returnTo: string;
  username?: string;
  /** Why one is here. */
  message?: string | undefined;
  /** Why the form is shown again. */
  fault?: Child;
  status?: 401 | 429;
}

/** The form stays: the name in it is kept, and the time runs out while one looks at it. */
function sendLocked(c: Context<AppEnv>, deps: Deps, again: View, seconds: number): Promise<Response> {
  const clock = clockOf(deps);
  const until = new Date(clock.now.getTime() + seconds * 1000).toISOString();
  c.header('Retry-After', String(seconds));
  const fault = (
    <>
      <p>Too many wrong passwords came from your address, so nobody can sign in from it for now.</p>
      <p class="figure">
        <Countdown until={until} clock={clock} over="You can try again now." />
      </p>
      <p>
        It cannot wait? An administrator elsewhere frees the address {c.env.clientAddress} in the console, under
        Lock-outs; or somebody at the machine, with <code>./scripts/unlock.sh {c.env.clientAddress}</code>
      </p>
    </>
  );
  return sendForm(c, deps, { ...again, fault, status: 429 });
}

/** The same for every name and every attempt: how many are left would tell what others at this address do. */
function WrongPassword() {
  return (
    <>
      <p>This name and password do not belong together.</p>
      <p>
        Look at capital letters and at the keyboard's language. After ten wrong passwords in five minutes this address
        has to wait 15 minutes. An administrator can set a new password.
      </p>
    </>
  );
}

function sendForm(c: Context<AppEnv>, { place }: Deps, shown: View): Promise<Response> {
  const { returnTo, username = '', message, fault, status = 401 } = shown;
  const body = (
    <>
      <p class="fine">
        {c.env.face === 'portal' ? 'Holdfast' : 'Console of Holdfast'} on <strong>{place.name}</strong>
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
          label="Name"
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
