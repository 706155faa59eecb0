// GET /lockouts: addresses that may not try a password now. POST /lockouts/release: lets one try again at once.

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

const HERE = '/lockouts';
const RELEASE = '/lockouts/release';

const SENTENCES = {
  released: 'The address may try again at once. What it failed before is forgotten.',
  free: 'That address was not locked any more: its time was over, or somebody else was quicker.',
};

const releaseSchema = z.object({ address: z.string().min(2).max(80) });

/** Adds the routes of this file. */
export function lockoutsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  pages.get(HERE, { access: 'admin' }, async function showLockouts(c) {
    const locked = await deps.authenticator.lockouts();
    const body = (
      <>
        <Notice c={c} sentences={SENTENCES} />
        <p>
          After ten wrong passwords within five minutes an address waits for a quarter of an hour, at every door that
          takes a password. It comes free by itself.
        </p>
        <div id="lockouts" data-live="self" data-every="10">
          {locked.length === 0 ? (
            <Empty>
              Nobody is locked out. If somebody cannot sign in all the same, it is the password or the account: see{' '}
              <a href="/people">People</a>.
            </Empty>
          ) : (
            <Locked locked={locked} clock={clockOf(deps)} />
          )}
          <noscript>
            <p class="fine">Reload this page to see more.</p>
          </noscript>
        </div>
      </>
    );
    return framed(c, deps, { title: 'Lock-outs', current: 'lockouts', body });
  });
  pages.post(RELEASE, { access: 'admin' }, async function release(c) {
    const form = await formOf(c);
    const { address } = parsed(releaseSchema, { address: form.text('address') });
    const { refused } = await attempt(() => releaseLockout(deps, actorOf(c), address), 'not_found');
    if (refused === undefined) return goTo(c, `${HERE}?done=released`);
    if (refused.code === 'not_found') return goTo(c, `${HERE}?done=free`);
    throw refused;
  });
}

function Locked({ locked, clock }: { locked: readonly LockedAddress[]; clock: Clock }) {
  return (
    <Table
      caption="Addresses that are locked, soonest free first"
      columns={[
        { label: 'Address' },
        { label: 'Wrong passwords', numeric: true },
        { label: 'Free again' },
        { label: 'What to do', silent: true },
      ]}
      rows={locked.map(({ address, failures, locked_until: until }) => [
        <code class="whole">{address}</code>,
        String(failures),
        <Countdown until={until} clock={clock} over="free now" />,
        <Confirm
          label="Let in…"
          of={address}
          action={RELEASE}
          button={`Let ${address} try again`}
          danger={false}
          id={`free-${address.replaceAll(/[^\w.-]/g, '_')}`}
        >
          <input type="hidden" name="address" value={address} />
          <p>
            Whoever is behind this address may try passwords again at once. Do it for somebody you know; if you do not
            know who it is, let them wait.
          </p>
        </Confirm>,
      ])}
    />
  );
}
