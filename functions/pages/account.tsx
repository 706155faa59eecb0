// GET /account in console and portal: shows the person's own account and sessions, and changes the
// password.

import { z } from '@hono/zod-openapi';
import { AppError } from '@holdfast/kit/app-error';
import type { Page } from '@holdfast/kit/json';
import { toUserView } from '../../shared/devices/accounts.ts';
import { type App, clearSessionCookie } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { newPassword } from '../../shared/http/schemas/people.ts';
import { actorOf } from '../../shared/http/sign-in.ts';
import type { Account } from '../../shared/identity/port.ts';
import type { Session } from '../../shared/sign-in/port.ts';
import type { Role } from '../../shared/sign-in/rules.ts';
import { endSession, endSessions } from '../../shared/sign-in/tokens.ts';
import { changeOwnPassword } from '../me.ts';
import { attempt, faultOf, formOf, parsed } from './form.ts';
import { framed } from './frame.tsx';
import { type PageContext, pagesOf } from './page-routes.ts';
import { Card, Confirm, Facts } from './parts/card.tsx';
import { Field } from './parts/field.tsx';
import { Missing, Notice, Problem } from './parts/notice.tsx';
import { pageNumber, Pager, Table } from './parts/table.tsx';
import { type Clock, clockOf, When } from './parts/time.tsx';

// The order matters: Edge and Opera also name Chrome, and Chrome also names Safari.
const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdgA?\//, 'Edge'],
  [/\b(?:OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/(?:Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const DEVICES: readonly [RegExp, string][] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\b(?:Macintosh|Mac OS X)\b/, 'Mac'],
  [/\bLinux\b/, 'Linux'],
];
const MAX_CHARACTERS = 60;

/**
 * A short name such as `Firefox on Android`. An unknown user agent is shown as it is, shortened.
 */
export function browserName(userAgent: string): string {
  const browser = nameIn(BROWSERS, userAgent);
  const device = nameIn(DEVICES, userAgent);
  if (browser !== undefined && device !== undefined) return `${browser} on ${device}`;
  const text = userAgent.trim();
  if (text === '') return browser ?? device ?? 'Unknown browser';
  return browser ?? (text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text);
}

function nameIn(names: readonly [RegExp, string][], userAgent: string): string | undefined {
  return names.find(([pattern]) => pattern.test(userAgent))?.[1];
}

export const SESSIONS_ON_PAGE = 50;

interface OwnSessionsProps {
  url: URL;
  page: number;
  sessions: Page<Session>;
  /** The id of the session of this request. */
  current: string;
  clock: Clock;
}

export function OwnSessions({ url, page, sessions: { results, count }, current, clock }: OwnSessionsProps) {
  return (
    <Card title="Sessions" id="sessions">
      <Table
        caption="Your sessions"
        columns={[
          { label: 'Browser' },
          { label: 'Address' },
          { label: 'Signed in' },
          { label: 'Expires' },
          { label: 'Actions', silent: true },
        ]}
        rows={results.map((session) => [
          session.id === current ? (
            <>
              {browserName(session.userAgent)} <strong>(current)</strong>
            </>
          ) : (
            browserName(session.userAgent)
          ),
          session.address,
          <When at={session.createdAt} clock={clock} relative />,
          <When at={session.expiresAt} clock={clock} />,
          <EndOne session={session} current={current} />,
        ])}
      />
      <Pager url={url} page={page} pageSize={SESSIONS_ON_PAGE} count={count} />
      <Confirm id="end-all" label="Sign out everywhere…" action="/account/sessions/end" button="Sign out everywhere">
        <p>
          This signs you out of every browser, including this one. Devices and API tokens keep working. If you don't
          recognize a session, change your password too.
        </p>
      </Confirm>
    </Card>
  );
}

/** Asks for no confirmation: the person can sign in again. */
function EndOne({ session: { id, userAgent, address }, current }: { session: Session; current: string }) {
  if (id === current) return null;
  return (
    <form method="post" action={`/account/sessions/${encodeURIComponent(id)}/end`}>
      <button type="submit" class="quiet small" aria-label={`End session of ${browserName(userAgent)} at ${address}`}>
        End session
      </button>
    </form>
  );
}

const ROLES: Record<Role, string> = {
  admin: 'Administrator: you can view and change everything',
  viewer: 'Viewer: you can view everything except settings, logs, audit log, API tokens and lockouts',
  none: 'Member: you can manage your own devices and password',
};
const passwords = z.object({ password: newPassword });

/** Adds the routes of this file. */
export function accountPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console', 'portal']);
  pages.get('/account', { access: 'own' }, (c) => showAccount(c, deps));

  pages.post('/account/password', { access: 'own' }, async function changePassword(c) {
    const form = await formOf(c);
    const result = await attempt(
      async () => {
        if (form.exact('password') !== form.exact('again')) throw passwordMismatch();
        const { password } = parsed(passwords, { password: form.exact('password') });
        await changeOwnPassword(c, deps, { current: form.exact('current'), password });
      },
      'unauthenticated',
      'locked_out',
    );
    if (result.refused !== undefined) return showAccount(c, deps, explained(result.refused));
    return goTo(c, '/sign-in?done=password');
  });

  pages.post('/account/sessions/end', { access: 'own' }, async function endAll(c) {
    await endSessions(deps, actorOf(c), c.get('principal').username);
    clearSessionCookie(c);
    return goTo(c, '/sign-in?done=sessions');
  });

  pages.post('/account/sessions/:id/end', { access: 'own' }, async function endOne(c) {
    const { username, by } = c.get('principal');
    const id = c.req.param('id') ?? '';
    const result = await attempt(() => endSession(deps, actorOf(c), { username, id }), 'not_found');
    if (by.kind === 'session' && by.id === id.toLowerCase()) {
      clearSessionCookie(c);
      return goTo(c, '/sign-in?done=session');
    }
    return goTo(c, result.refused === undefined ? '/account?done=session' : '/account?done=gone');
  });
}

function passwordMismatch(): AppError {
  const message = 'must match the new password. Type both again';
  return new AppError('invalid', `again: ${message}`, { fields: [{ path: 'again', message }] });
}

/**
 * Shows a wrong password at its field. Its status is 422: a 401 would mean that the session has
 * ended.
 */
function explained(refused: AppError): AppError {
  if (refused.code !== 'unauthenticated') return refused;
  const message = 'is not your current password. Nothing was changed. Wrong passwords count as failed sign-ins';
  return new AppError('invalid', `current: ${message}`, { fields: [{ path: 'current', message }] });
}

const NOTICES = {
  session: 'Session ended.',
  gone: 'That session had already ended.',
};

async function showAccount(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const { username, by } = c.get('principal');
  const page = pageNumber(c.req.query('page'));
  const clock = clockOf(deps);
  const [account, sessions] = await Promise.all([
    attempt(() => deps.identity.accounts.named(username)),
    deps.signIns.sessions(username, { page, pageSize: SESSIONS_ON_PAGE }),
  ]);
  const current = by.kind === 'session' ? by.id : '';
  const body = (
    <>
      <Notice c={c} sentences={NOTICES} />
      <div class="columns own">
        <Card title="Profile">
          {account.refused === undefined ? null : (
            <Missing>Couldn't load the whole profile. {account.refused.message}</Missing>
          )}
          <Person c={c} deps={deps} account={account.done} clock={clock} />
        </Card>
        <PasswordCard username={username} refused={refused} />
      </div>
      <OwnSessions url={new URL(c.req.url)} page={page} sessions={sessions} current={current} clock={clock} />
    </>
  );
  return framed(c, deps, { title: 'My account', current: 'account', body, refused });
}

interface PersonProps {
  c: PageContext;
  deps: Deps;
  account: Account | undefined;
  clock: Clock;
}

function Person({ c, deps, account, clock }: PersonProps) {
  const { username, role } = c.get('principal');
  const shown = account === undefined ? undefined : toUserView(account, deps);
  const groups = shown === undefined ? undefined : shown.groups.join(', ');
  return (
    <Facts
      of={{
        Username: username,
        Name: shown?.name === '' || shown?.name === username ? undefined : shown?.name,
        Email: shown?.email === '' ? undefined : shown?.email,
        Role: ROLES[role],
        Groups: groups === '' ? 'none (your devices see only devices without a group)' : groups,
        'Access expires':
          shown === undefined ? undefined : <When at={shown.expires_at} clock={clock} relative never="never" />,
      }}
    />
  );
}

function PasswordCard({ username, refused }: { username: string; refused: AppError | undefined }) {
  const formError = refused !== undefined && refused.fields.length === 0 ? refused : undefined;
  return (
    <Card title="Change password" id="password-card">
      <Problem error={formError} />
      <form method="post" action="/account/password">
        <input
          class="silent"
          type="text"
          name="username"
          autocomplete="username"
          value={username}
          readonly
          tabindex={-1}
          aria-hidden="true"
        />
        <Field
          name="current"
          label="Current password"
          type="password"
          autocomplete="current-password"
          required
          error={sentence('This', faultOf(refused, 'current'))}
        />
        <Field
          name="password"
          label="New password"
          hint="At least 12 characters. Four unrelated words are strong and easy to type."
          type="password"
          autocomplete="new-password"
          required
          error={sentence('It', faultOf(refused, 'password'))}
        />
        <Field
          name="again"
          label="Repeat new password"
          type="password"
          autocomplete="new-password"
          required
          error={sentence('It', faultOf(refused, 'again'))}
        />
        <p class="fine">
          You will be signed out everywhere, including here. Enrolled devices keep working. Programs that use your old
          password stop working.
        </p>
        <button type="submit">Change password</button>
      </form>
    </Card>
  );
}

/** Turns the message of a field, such as `must have at least 12 characters`, into a sentence. */
function sentence(subject: string, fault: string | undefined): string | undefined {
  return fault === undefined ? undefined : `${subject} ${fault}.`;
}
