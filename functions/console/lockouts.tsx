// GET /lockouts: lists locked-out addresses. POST /lockouts/release: unlocks one.

import { z } from '@hono/zod-openapi';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actorOf } from '../../shared/http/sign-in.ts';
import type { LockedAddress } from '../../shared/sign-in/port.ts';
import { releaseLockout } from '../../shared/sign-in/tokens.ts';
import { attempt, formOf, parsed } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { pagesOf } from '../pages/page-routes.ts';
import { Confirm } from '../pages/parts/card.tsx';
import { Notice } from '../pages/parts/notice.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';
import { type Clock, clockOf, Countdown } from '../pages/parts/time.tsx';

const PATH = '/lockouts';
const RELEASE = '/lockouts/release';

const NOTICES = {
  released: 'Address unlocked. It can sign in again, and its failed attempts are cleared.',
  free: 'That address was no longer locked out. The lockout ended, or another administrator unlocked it.',
};

const releaseSchema = z.object({ address: z.string().min(2).max(80) });

/** Adds the routes of this file. */
export function lockoutsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get(PATH, { access: 'admin' }, async function showLockouts(c) {
    const locked = await deps.authenticator.lockouts();
    const body = (
      <>
        <Notice c={c} sentences={NOTICES} />
        <p>
          After 10 wrong passwords within 5 minutes, an address is locked out for 15 minutes wherever a password is
          accepted. Lockouts end automatically.
        </p>
        <div id="lockouts" data-live="self" data-every="10">
          {locked.length === 0 ? (
            <Empty>
              No lockouts. If a person can't sign in, check the password and the account under{' '}
              <a href="/people">People</a>.
            </Empty>
          ) : (
            <Locked locked={locked} clock={clockOf(deps)} />
          )}
          <noscript>
            <p class="fine">Reload this page to see changes.</p>
          </noscript>
        </div>
      </>
    );
    return framed(c, deps, { title: 'Lockouts', current: 'lockouts', body });
  });
  pages.post(RELEASE, { access: 'admin' }, async function release(c) {
    const form = await formOf(c);
    const { address } = parsed(releaseSchema, { address: form.text('address') });
    const { refused } = await attempt(() => releaseLockout(deps, actorOf(c), address), 'not_found');
    if (refused === undefined) return goTo(c, `${PATH}?done=released`);
    if (refused.code === 'not_found') return goTo(c, `${PATH}?done=free`);
    throw refused;
  });
}

function Locked({ locked, clock }: { locked: readonly LockedAddress[]; clock: Clock }) {
  return (
    <Table
      caption="Locked-out addresses, first to end first"
      columns={[
        { label: 'Address' },
        { label: 'Wrong passwords', numeric: true },
        { label: 'Ends' },
        { label: 'Actions', silent: true },
      ]}
      rows={locked.map(({ address, failures, locked_until: until }) => [
        <code class="whole">{address}</code>,
        String(failures),
        <Countdown until={until} clock={clock} over="ended" />,
        <Confirm
          label="Unlock…"
          of={address}
          action={RELEASE}
          button={`Unlock ${address}`}
          danger={false}
          id={`free-${address.replaceAll(/[^\w.-]/g, '_')}`}
        >
          <input type="hidden" name="address" value={address} />
          <p>
            This address can try passwords again immediately. Unlock it only if you know who uses it. Otherwise, let the
            lockout end.
          </p>
        </Confirm>,
      ])}
    />
  );
}
