// /guides: how a device is set up, app by app, with this server's real address, and what to do when it fails.

import { AppError } from '../../shared/domain/app-error.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Copyable, Facts } from '../pages/parts/card.tsx';
import { Missing, Warning } from '../pages/parts/notice.tsx';
import type { Guide, GuideFacts } from './guide.ts';
import { atakGuide } from './guide-atak.tsx';
import { itakGuide } from './guide-itak.tsx';
import { WhenItFails } from './guide-faults.tsx';
import { winTakGuide } from './guide-wintak.tsx';
import { ownerOf } from './own-account.ts';
import { type ServerFacts, serverFacts } from './server-facts.ts';

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
