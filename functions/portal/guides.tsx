// GET /guides: setup guides for each app, with this server's address, and troubleshooting.

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
  /** The message that the app shows. */
  message: string;
  meaning: string;
  remedy: string;
}

/** The messages of apps that can't connect, with their meaning and fix. */
export function Troubleshooting({ facts }: { facts: GuideFacts }) {
  return (
    <Card title="Troubleshooting" id="when-it-fails">
      <p>
        <a href="/add-device">Add device</a> can check every step and name the first problem. If the device shows a
        message, find it here:
      </p>
      <ul class="faults">
        {faultsAt(facts).map(({ message, meaning, remedy }) => (
          <li>
            <h3>{message}</h3>
            <p>{meaning}</p>
            <p>
              <strong>Fix:</strong> {remedy}
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
      meaning: "The device doesn't know this server's certificate authority, or knows an older one.",
      remedy: 'Delete the incomplete server entry on the device. Open the package, then create a new code.',
    },
    {
      message: '“Unauthorized”, “401”, “invalid credentials”',
      meaning: 'The app password has expired or was mistyped.',
      remedy: 'Create a new code. Type the app password, not your own password, and check capital letters.',
    },
    {
      message: '“Connection refused”, “timed out”',
      meaning: `The device can't reach ${host} on port ${enrollment}, or on port ${streaming} after that.`,
      remedy: 'Try without Wi-Fi, then without VPN. If neither helps, give an administrator both port numbers.',
    },
    {
      message: '“Too many requests”, “429”',
      meaning: 'Your network is locked out for 15 minutes after ten wrong passwords.',
      remedy: 'Wait, or ask an administrator to unlock the address under Lockouts.',
    },
    {
      message: 'Connected, but the map is empty',
      meaning: 'You are in a different group than the others, or in none.',
      remedy: 'Check your groups under My account. An administrator can change them.',
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
        <p>Each guide takes a few minutes. Have the device ready, with this page open on it or next to it.</p>
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
    return framed(c, deps, { title: 'Setup guides', current: 'guides', body });
  });

  pages.get('/guides/:app', { access: 'own' }, async function showGuide(c) {
    const key = c.req.param('app') ?? '';
    const guide = Object.hasOwn(GUIDES, key) ? GUIDES[key] : undefined;
    if (guide === undefined) throw new AppError('not_found', 'No guide for this app. Open /guides to see all guides.');
    const facts = await guideFacts(c, deps);
    const body = (
      <>
        <NoAddress facts={facts} />
        {guide.body(facts)}
        <Server facts={facts} />
        <Troubleshooting facts={facts} />
        <p>
          <a href="/guides">All guides</a>
        </p>
      </>
    );
    const actions = (
      <a class="button primary" href="/add-device">
        Add device
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

function NoAddress({ facts: { host } }: { facts: ServerFacts }) {
  if (host !== undefined) return null;
  return (
    <Warning>
      <p>This server's address isn't set, so devices can't find it. Ask an administrator to set SERVER_ADDRESS.</p>
    </Warning>
  );
}

/** The server's address, ports and CA, to type or to compare with the device. */
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
        <Missing>Couldn't read the CA fingerprint. {problem}</Missing>
      ) : (
        <p class="fine">
          SHA-256 of the certificate authority. If a device shows another fingerprint, it is talking to another server.
          Stop and ask an administrator.
        </p>
      )}
    </Card>
  );
}
