// /guides: how a device is set up, app by app, with this server's real address, and what to do when it fails.

import { AppError } from '@holdfast/kit/app-error';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Copyable, Facts } from '../pages/parts/card.tsx';
import { Missing, Warning } from '../pages/parts/notice.tsx';
import {
  atakGuide,
  type Guide,
  type GuideFacts,
  itakGuide,
  type ServerFacts,
  serverFacts,
  winTakGuide,
} from './guide-apps.tsx';
import { ownerOf } from './own.ts';

interface Fault {
  /** In the words of the app. */
  message: string;
  meaning: string;
  remedy: string;
}

/** What devices say when they do not come in, in their words, and what that means here. */
export function WhenItFails({ facts }: { facts: GuideFacts }) {
  return (
    <Card title="When it fails" id="when-it-fails">
      <p>
        <a href="/add-device">Add a device</a> looks at the whole way itself, and names the first thing that is wrong.
        By what the device says:
      </p>
      <ul class="faults">
        {faultsAt(facts).map(({ message, meaning, remedy }) => (
          <li>
            <h3>{message}</h3>
            <p>{meaning}</p>
            <p>
              <strong>Do:</strong> {remedy}
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function faultsAt({ host = 'the address', enrollment, streaming }: GuideFacts): Fault[] {
  return [
    {
      message: '“Connection failed: error sending request”, “certificate not trusted”',
      meaning: 'It does not know the certificate authority of this server, or knows an older one.',
      remedy: 'delete the half-made server entry on the device, open the package, and take a new code.',
    },
    {
      message: '“Unauthorized”, “401”, “invalid credentials”',
      meaning: 'The app password is over, or was typed wrongly.',
      remedy: 'take a new code. Type the app password, not your own, and look at capital letters.',
    },
    {
      message: '“Connection refused”, “timed out”',
      meaning: `The device does not reach ${host} at port ${enrollment}, or at port ${streaming} after that.`,
      remedy: 'try without Wi-Fi, then without VPN. If neither helps, tell an administrator both ports.',
    },
    {
      message: '“Too many requests”, “429”',
      meaning: 'Ten wrong passwords came from the network that you are in. It waits 15 minutes.',
      remedy: 'wait, or ask an administrator to free the address under Lock-outs.',
    },
    {
      message: 'Connected, but nobody is on the map',
      meaning: 'You are in another group than the others, or in none.',
      remedy: 'look at your groups under My account; an administrator changes them.',
    },
  ];
}

const GUIDES: Readonly<Record<string, Guide>> = { atak: atakGuide, itak: itakGuide, wintak: winTakGuide };

/** Adds the routes of this file. */
export function guidePages(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['portal']);

  pages.get('/guides', { access: 'own' }, async function listGuides(c) {
    const body = (
      <>
        <p>Each takes a few minutes. You need the device in your hand, and this page open on it or beside it.</p>
        <ul class="links guides">
          {Object.entries(GUIDES).map(([key, { title, about }]) => (
            <li>
              <a href={`/guides/${key}`}>
                <strong>{title}</strong>
                <span class="fine">{about}</span>
              </a>
            </li>
          ))}
        </ul>
        <Server facts={await serverFacts(deps)} />
      </>
    );
    return framed(c, deps, { title: 'Set-up guides', current: 'guides', body });
  });

  pages.get('/guides/:app', { access: 'own' }, async function showGuide(c) {
    const key = c.req.param('app') ?? '';
    const guide = Object.hasOwn(GUIDES, key) ? GUIDES[key] : undefined;
    if (guide === undefined)
      throw new AppError('not_found', 'There is no guide for this app; see /guides for those that there are.');
    const facts = await guideFacts(c, deps);
    const body = (
      <>
        <Absent facts={facts} />
        {guide.body(facts)}
        <Server facts={facts} />
        <WhenItFails facts={facts} />
        <p>
          <a href="/guides">All guides</a>
        </p>
      </>
    );
    const actions = (
      <a class="button primary" href="/add-device">
        Add a device
      </a>
    );
    return framed(c, deps, { title: guide.title, current: 'guides', body, actions });
  });
}

async function guideFacts(c: PageContext, deps: Deps): Promise<GuideFacts> {
  const [facts, owner] = await Promise.all([serverFacts(deps), ownerOf(c, deps)]);
  const id = owner.kind === 'person' ? owner.account.id : undefined;
  const packageFor = (app: 'atak' | 'itak'): string | undefined =>
    id === undefined ? undefined : `/api/users/${id}/enrollment/package?app=${app}`;
  return { ...facts, username: c.get('principal').username, packageFor };
}

function Absent({ facts: { host } }: { facts: ServerFacts }) {
  if (host !== undefined) return null;
  return (
    <Warning>
      <p>
        This server does not know its own address, so no device can be told where to go. An administrator has to set
        SERVER_ADDRESS.
      </p>
    </Warning>
  );
}

/** To type, or to compare with what a device shows. */
function Server({ facts }: { facts: ServerFacts }) {
  const { host, enrollment, streaming, api, fingerprint, problem } = facts;
  return (
    <Card title="This server" id="server">
      <Facts
        of={{
          Address: host === undefined ? 'not set' : <Copyable id="server-address" text={host} />,
          'Enrollment port': String(enrollment),
          'Streaming port': `${streaming} (SSL)`,
          'API port': String(api),
          'CA fingerprint': fingerprint === undefined ? undefined : <code class="fingerprint">{fingerprint}</code>,
        }}
      />
      {fingerprint === undefined ? (
        <Missing>The fingerprint of the CA cannot be read now: {problem}</Missing>
      ) : (
        <p class="fine">
          SHA-256 of the certificate authority. A device that shows another one talks to another server: stop there, and
          ask an administrator.
        </p>
      )}
    </Card>
  );
}
