// /devices: who is connected to the stream now, and how somebody is thrown out in two taps.

import { AppError } from '../../shared/domain/app-error.ts';
import { actingIn } from '../../shared/http/acting.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actorOf } from '../../shared/http/sign-in.ts';
import { connectedClients, type ConnectedClient, disconnectClient } from '../../shared/verbs/connected-clients.ts';
import { shutOutDevice } from '../../shared/verbs/shut-out-device.ts';
import { clockOf } from '../pages/clock.ts';
import { attempt, type Form, formOf } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Search } from '../pages/parts/card.tsx';
import { Missing, Notice, Problem } from '../pages/parts/notice.tsx';
import { pageNumber, Pager } from '../pages/parts/table.tsx';
import { DeviceList, NoDevices } from './device-list.tsx';

const ON_A_PAGE = 50;

const SENTENCES = {
  disconnected: 'The connection is ended. The device may come back as long as its certificate is good.',
  'shutting-out': (
    <>
      The certificate is revoked at the core, or will be as soon as the core answers. The proof is still to come:{' '}
      <a href="/certificates?status=revoked">see how far it is</a>.
    </>
  ),
  gone: 'That device is not connected any more. To keep it out, revoke its certificate.',
};

const USERNAME = /^[\w.-]{1,64}$/;

/** A device names itself: another one of the same person may have taken the name of this one. */
function shutOutSentence(person: string) {
  const known = USERNAME.test(person);
  const search = new URLSearchParams({ search: person });
  return (
    <>
      The device{known ? ` of ${person}` : ''} is shut out: its certificate is revoked and its connection ended. If it
      comes back, deactivate {known ? <a href={`/people?${search.toString()}`}>{person}</a> : 'the person'}: another
      device of theirs may have told a wrong name.
    </>
  );
}

/** Adds the routes of this file. */
export function devicesPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get('/devices', { access: 'viewer' }, function showDevices(c) {
    return showPage(c, deps);
  });

  pages.post('/devices/disconnect', { access: 'admin' }, async function disconnect(c) {
    const form = await formOf(c);
    const tried = await attempt(async () => disconnectClient(deps, actorOf(c), await meantBy(form, deps)), 'not_found');
    return afterwards(c, tried.refused, 'disconnected');
  });

  pages.post('/devices/shut-out', { access: 'admin', area: 'people' }, async function shutOut(c) {
    const form = await formOf(c);
    const tried = await attempt(async () => shutOutDevice(actingIn(c, deps), await meantBy(form, deps)), 'not_found');
    if (tried.refused !== undefined) return afterwards(c, tried.refused, '');
    const { client, revocations } = tried.done;
    if (revocations.length === 0) return goTo(c, `/certificates?${which(client)}`);
    const isProven = revocations.every(({ state }) => state === 'revoked');
    const done = { done: isProven ? 'shut-out' : 'shutting-out', person: client.username };
    return goTo(c, `/devices?${new URLSearchParams(done).toString()}`);
  });

  function afterwards(c: PageContext, refused: AppError | undefined, word: string): Response | Promise<Response> {
    if (refused === undefined) return goTo(c, `/devices?done=${word}`);
    if (refused.code === 'not_found') return goTo(c, '/devices?done=gone');
    return showPage(c, deps, refused);
  }
}

/**
 * The name of the connection that was shown; where that has ended, of the one that the same device of the same person has now.
 * Devices choose their uid: nobody is taken for somebody else who has chosen the same.
 */
async function meantBy(form: Form, deps: Deps): Promise<string> {
  const [connection, uid, username] = ['connection', 'uid', 'username'].map((name) => form.exact(name));
  const clients = await connectedClients(deps);
  const found =
    clients.find((each) => each.connection === connection) ??
    clients.find((each) => each.uid === uid && each.username === username);
  if (found === undefined) throw new AppError('not_found', 'That device is not connected any more.');
  return found.connection;
}

/** Which certificate it has come with nobody can tell: a person can. */
function which({ username }: ConnectedClient): string {
  return new URLSearchParams({ search: username, status: 'active', done: 'which' }).toString();
}

async function showPage(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const search = (c.req.query('search') ?? '').trim().slice(0, 200);
  const page = pageNumber(c.req.query('page'));
  const asked = await attempt(() => deps.together('clients', () => connectedClients(deps)));
  const all = asked.done ?? [];
  const found = all.filter((client) => fits(client, search.toLowerCase()));
  const mayEnd = isAdmin(c);
  const clock = clockOf(deps);
  const body = (
    <>
      <Notice c={c} sentences={{ ...SENTENCES, 'shut-out': shutOutSentence(c.req.query('person') ?? '') }} />
      <Problem error={refused} />
      <Search action="/devices" label="Search devices" value={search} placeholder="Callsign, person, group, address" />
      <section id="devices" {...(refused === undefined ? { 'data-live': 'self', 'data-every': '5' } : {})}>
        {asked.refused === undefined ? null : (
          <Missing>
            Who is connected cannot be seen now: {asked.refused.message} This page tries again by itself.
          </Missing>
        )}
        {asked.refused !== undefined ? null : found.length === 0 ? (
          <NoDevices search={search} mayEnd={mayEnd} />
        ) : (
          <>
            <DeviceList clients={found.slice((page - 1) * ON_A_PAGE, page * ON_A_PAGE)} clock={clock} mayEnd={mayEnd} />
            <Pager url={new URL(c.req.url)} page={page} pageSize={ON_A_PAGE} count={found.length} />
          </>
        )}
      </section>
      <noscript>
        <p class="fine">Reload the page to see who has come and gone.</p>
      </noscript>
    </>
  );
  const actions = mayEnd ? (
    <a class="button" href="/people">
      Enroll a device
    </a>
  ) : undefined;
  return framed(c, deps, { title: 'Connected devices', current: 'devices', body, refused, actions });
}

function fits(
  { callsign, username, uid, groups, team, role, device, address }: ConnectedClient,
  text: string,
): boolean {
  return [callsign, username, uid, team, role, device, address, ...groups].some((each) =>
    each.toLowerCase().includes(text),
  );
}
