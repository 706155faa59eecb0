// /account at both faces: who one is here, one's own password, and where one is signed in.

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

// What a session was opened with, in a few words that its person recognises.
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

/** `Firefox on Android`; what is not known is shown as it is, shortened. */
export function browserName(userAgent: string): string {
  const browser = nameIn(BROWSERS, userAgent);
  const device = nameIn(DEVICES, userAgent);
  if (browser !== undefined && device !== undefined) return `${browser} on ${device}`;
  const text = userAgent.trim();
  if (text === '') return browser ?? device ?? 'Unknown program';
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
  /** The id of the one that asks. */
  current: string;
  clock: Clock;
}

export function OwnSessions({ url, page, sessions: { results, count }, current, clock }: OwnSessionsProps) {
  return (
    <Card title="Where you are signed in" id="sessions">
      <Table
        caption="Your sessions"
        columns={[
          { label: 'Browser' },
          { label: 'Address' },
          { label: 'Signed in' },
          { label: 'Ends' },
          { label: 'End it', silent: true },
        ]}
        rows={results.map((session) => [
          session.id === current ? (
            <>
              {browserName(session.userAgent)} <strong>(this one)</strong>
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
      <Confirm id="end-all" label="Sign out everywhere…" action="/account/sessions/end" button="End all of my sessions">
        <p>
          Every browser that you are signed in with is signed out, this one too. Devices and API tokens go on. If you do
          not know one of the sessions, change your password as well.
        </p>
      </Confirm>
    </Card>
  );
}

/** No question: whoever it was signs in again. */
function EndOne({ session: { id, userAgent, address }, current }: { session: Session; current: string }) {
  if (id === current) return null;
  return (
    <form method="post" action={`/account/sessions/${encodeURIComponent(id)}/end`}>
      <button
        type="submit"
        class="quiet small"
        aria-label={`End it: the session of ${browserName(userAgent)} at ${address}`}
      >
        End it
      </button>
    </form>
  );
}

const ROLES: Record<Role, string> = {
  admin: 'Administrator: you may do everything',
  viewer: 'Viewer: you may read everything but settings, logs, the audit log, API tokens and lock-outs',
  none: 'None: you see what is your own',
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
        if (form.exact('password') !== form.exact('again')) throw notTheSame();
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
    const answer = await attempt(() => endSession(deps, actorOf(c), { username, id }), 'not_found');
    if (by.kind === 'session' && by.id === id.toLowerCase()) {
      clearSessionCookie(c);
      return goTo(c, '/sign-in?done=session');
    }
    return goTo(c, answer.refused === undefined ? '/account?done=session' : '/account?done=gone');
  });
}

function notTheSame(): AppError {
  const message = 'is not the same as the new password above; type both again';
  return new AppError('invalid', `again: ${message}`, { fields: [{ path: 'again', message }] });
}

/** A wrong password is told at its field; the same status as for other faults, for nobody is signed out. */
function explained(refused: AppError): AppError {
  if (refused.code !== 'unauthenticated') return refused;
  const message = 'is not your password; nothing was changed. Wrong ones count as failed sign-ins';
  return new AppError('invalid', `current: ${message}`, { fields: [{ path: 'current', message }] });
}

const SENTENCES = {
  session: 'That session has ended.',
  gone: 'That session had ended already.',
};

async function showAccount(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const { username, by } = c.get('principal');
  const page = pageNumber(c.req.query('page'));
  const clock = clockOf(deps);
  const [requested, sessions] = await Promise.all([
    attempt(() => deps.identity.accounts.named(username)),
    deps.signIns.sessions(username, { page, pageSize: SESSIONS_ON_PAGE }),
  ]);
  const current = by.kind === 'session' ? by.id : '';
  const body = (
    <>
      <Notice c={c} sentences={SENTENCES} />
      <div class="columns own">
        <Card title="Who you are">
          {requested.refused === undefined ? null : (
            <Missing>
              The identity provider does not answer, so this may not be whole: {requested.refused.message}
            </Missing>
          )}
          <Person c={c} deps={deps} account={requested.done} clock={clock} />
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
        'User name': username,
        Name: shown?.name === '' || shown?.name === username ? undefined : shown?.name,
        'E-mail': shown?.email === '' ? undefined : shown?.email,
        Role: ROLES[role],
        Groups: groups === '' ? 'none: your devices see only others that are in none' : groups,
        'Access ends':
          shown === undefined ? undefined : <When at={shown.expires_at} clock={clock} relative never="never" />,
      }}
    />
  );
}

function PasswordCard({ username, refused }: { username: string; refused: AppError | undefined }) {
  const elsewhere = refused !== undefined && refused.fields.length === 0 ? refused : undefined;
  return (
    <Card title="Change your password" id="password-card">
      <Problem error={elsewhere} />
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
          label="The password you have now"
          type="password"
          autocomplete="current-password"
          required
          error={sentence('This', faultOf(refused, 'current'))}
        />
        <Field
          name="password"
          label="New password"
          hint="At least 12 characters. Four words that do not belong together are good, and easy to type on a phone."
          type="password"
          autocomplete="new-password"
          required
          error={sentence('It', faultOf(refused, 'password'))}
        />
        <Field
          name="again"
          label="New password once more"
          type="password"
          autocomplete="new-password"
          required
          error={sentence('It', faultOf(refused, 'again'))}
        />
        <p class="fine">
          You are signed out everywhere then, here too. Devices that are enrolled go on; what programs do with your old
          password stops.
        </p>
        <button type="submit">Change the password</button>
      </form>
    </Card>
  );
}

/** Messages of fields say what the field must be: `must have at least 12 characters`. */
function sentence(subject: string, fault: string | undefined): string | undefined {
  return fault === undefined ? undefined : `${subject} ${fault}.`;
}
