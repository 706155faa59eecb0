// ATAK on Android: the package where it is needed, then the code; by hand when the code cannot be scanned.

import type { Child } from 'hono/jsx';
import { apiPortOf, streamingPortOf } from '../../shared/devices/links.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { needsPackage } from '../pages/enrollment/apps.ts';
import { attempt } from '../pages/form.ts';
import { Card } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';

/** What a guide is, and what it is told of the server and of whoever reads it. */
export interface GuideFacts extends ServerFacts {
  username: string;
  /** Where one's own package is, for an app; undefined when that is not known now. */
  packageFor(app: 'atak' | 'itak'): string | undefined;
}

export interface Guide {
  title: string;
  /** In the list of guides. */
  about: string;
  body(facts: GuideFacts): Child;
}

/** What guides are made of: numbered steps, and the package that brings a device the CA and the address. */
export function Steps({ title, intro, steps }: { title: string; intro?: Child; steps: readonly Child[] }) {
  return (
    <Card title={title}>
      {intro === undefined ? null : <p>{intro}</p>}
      <ol class="guide-steps">
        {steps.map((step) => (
          <li>{step}</li>
        ))}
      </ol>
    </Card>
  );
}

/** Menu entries one after the other, as they are tapped. */
export function Path({ of }: { of: readonly string[] }) {
  return (
    <span class="path">
      {of.map((entry, at) => (
        <>
          {at === 0 ? '' : ' › '}
          <strong>{entry}</strong>
        </>
      ))}
    </span>
  );
}

interface PackageLinkProps {
  facts: GuideFacts;
  app: 'atak' | 'itak';
}

export function PackageLink({ facts, app }: PackageLinkProps) {
  const path = facts.packageFor(app);
  if (path === undefined)
    return <Missing>The package cannot be offered: nobody knows now which account is yours.</Missing>;
  return (
    <a class="button" href={path}>
      Download the package
    </a>
  );
}

/** Why the package comes first here, or need not. */
export function whyPackage({ linkIsEnough }: GuideFacts): Child {
  return linkIsEnough
    ? 'This server has a public certificate, so the code alone is enough. The package below is only for when the device says that it does not trust the server.'
    : 'This server has a certificate of its own that no device knows yet. The package brings it to the device, with address and ports: without it the code fails.';
}

/** What somebody types or compares to set a device up: this server's real address, ports and CA. */
export interface ServerFacts {
  /** What the server is called on a device. */
  name: string;
  /** Undefined while SERVER_ADDRESS is not set: then no device can be told where to go. */
  host: string | undefined;
  enrollment: number;
  streaming: number;
  api: number;
  /** SHA-256 of the CA certificate; undefined with the reason beside it while it cannot be read. */
  fingerprint: string | undefined;
  problem: string | undefined;
  /** A phone trusts the enrollment by itself, and the link has room for all that it needs. */
  linkIsEnough: boolean;
}

export async function serverFacts(deps: Deps): Promise<ServerFacts> {
  const { settings, place } = deps;
  const result = await attempt(() => deps.coreAuthority.certificate());
  const enrollment = settings.CORE_ENROLLMENT_PORT;
  const streaming = streamingPortOf(settings.CORE_STREAMING_URL);
  return {
    name: place.name,
    host: settings.SERVER_ADDRESS,
    enrollment,
    streaming,
    api: apiPortOf(settings.CORE_API_URL),
    fingerprint: result.done?.fingerprint,
    problem: result.refused?.message,
    linkIsEnough: !needsPackage(deps),
  };
}

const INSTALL = 'Install ATAK-CIV, open it once, and allow what it asks for: files, location, notifications.';

export const atakGuide: Guide = {
  title: 'ATAK on Android',
  about: 'Phone or tablet with ATAK-CIV 5.1 or newer',
  body: (facts) => (
    <>
      {facts.linkIsEnough ? null : <Package facts={facts} />}
      <Steps
        title={facts.linkIsEnough ? '1. Scan the code' : '2. Scan the code'}
        {...(facts.linkIsEnough ? { intro: whyPackage(facts) } : {})}
        steps={[
          ...(facts.linkIsEnough ? [INSTALL] : []),
          <>
            On another screen open <a href="/add-device">Add a device</a> and choose ATAK. On this same device? Tap the
            link there instead of scanning.
          </>,
          <>
            Point the camera of the phone at the code, and tap what it offers. ATAK opens and asks whether to add the
            server.
          </>,
          <>Confirm. ATAK fetches its certificate; a minute later the plug symbol at the lower edge is green.</>,
        ]}
      />
      {facts.linkIsEnough ? <Package facts={facts} /> : null}
      <ByHand facts={facts} />
    </>
  ),
};

function Package({ facts }: { facts: GuideFacts }) {
  return (
    <Steps
      title={facts.linkIsEnough ? 'If it does not trust the server: the package' : '1. Open the package first'}
      intro={whyPackage(facts)}
      steps={[
        ...(facts.linkIsEnough ? [] : [INSTALL]),
        <>
          On the device itself: <PackageLink facts={facts} app="atak" />
        </>,
        <>
          In ATAK tap <Path of={['☰', 'Import', 'Local SD']} />, and choose the file in Download. Or tap the file in
          the list of downloads, and open it with ATAK.
        </>,
        <>
          ATAK asks for name and password: type <code>{facts.username}</code> and the app password that{' '}
          <a href="/add-device">Add a device</a> shows. Then you are done. Or cancel, and go on with the code.
        </>,
      ]}
    />
  );
}

function ByHand({ facts: { host = 'the address below', username, streaming, enrollment } }: { facts: GuideFacts }) {
  return (
    <details class="card" id="by-hand">
      <summary>By hand, without a code</summary>
      <ol class="guide-steps">
        <li>
          <Path of={['☰', 'Settings', 'Network Preferences', 'TAK Servers']} />, then <Path of={['⋮', 'Add']} />.
        </li>
        <li>
          Address <code>{host}</code>. Tick <strong>Use Authentication</strong> and{' '}
          <strong>Enroll for Client Certificate</strong>.
        </li>
        <li>
          User name <code>{username}</code>; password: the app password of <a href="/add-device">Add a device</a>.
        </li>
        <li>
          Under <strong>Advanced Options</strong>: protocol SSL, port <code>{String(streaming)}</code>, enrollment port{' '}
          <code>{String(enrollment)}</code>. When you have imported the package, its truststore is in use already.
        </li>
      </ol>
    </details>
  );
}

/** iTAK on iPhone and iPad: its code has no room for name and password, so these are typed. */
export const itakGuide: Guide = {
  title: 'iTAK on iPhone and iPad',
  about: 'Name and password are typed. For TAK Aware and TAK Tracker choose theirs under Add a device',
  body: (facts) => {
    const scan = (
      <Steps
        title={facts.linkIsEnough ? 'Scan the code' : 'Then the code, if the package did not ask for a name'}
        steps={[
          <>
            On another screen open <a href="/add-device">Add a device</a> and choose iTAK.
          </>,
          <>
            In iTAK: <Path of={['Settings', 'Network', 'Servers', '+', 'Scan QR']} />, and scan it with iTAK itself: the
            camera of the phone cannot read this code.
          </>,
          <>
            Type your name <code>{facts.username}</code> and the app password that stands beside the code. It is not the
            password that you sign in with here.
          </>,
          <>The server turns green in the list.</>,
        ]}
      />
    );
    const bring = (
      <Steps
        title={facts.linkIsEnough ? 'If it does not trust the server: the package' : 'Open the package first'}
        intro={whyPackage(facts)}
        steps={[
          <>
            On the device itself: <PackageLink facts={facts} app="itak" />
          </>,
          <>
            In iTAK: <Path of={['Settings', 'Network', 'Servers', '+', 'Upload Server Package']} />, and choose the file
            in Downloads. Do not unpack it.
          </>,
          <>
            When iTAK asks: your name <code>{facts.username}</code>, and the app password of{' '}
            <a href="/add-device">Add a device</a>.
          </>,
        ]}
      />
    );
    return facts.linkIsEnough ? (
      <>
        {scan}
        {bring}
      </>
    ) : (
      <>
        {bring}
        {scan}
      </>
    );
  },
};

/** WinTAK on Windows: the package of ATAK, then name and password. */
export const winTakGuide: Guide = {
  title: 'WinTAK on Windows',
  about: 'Computer with WinTAK-CIV; there is nothing to scan',
  body: (facts) => (
    <>
      <Steps
        title="Open the package"
        intro="It brings WinTAK the address, the ports and the certificate authority of this server. There is no key in it: WinTAK fetches one with your name and a password."
        steps={[
          <>
            On the computer: <PackageLink facts={facts} app="atak" />
          </>,
          <>
            Open <a href="/add-device">Add a device</a> beside it and choose WinTAK: it shows the app password.
          </>,
          <>
            In WinTAK: <Path of={['☰', 'Import Manager', 'Import File']} />, and choose the package; or drag it onto
            the map.
          </>,
          <>
            When WinTAK asks: name <code>{facts.username}</code>, and the app password. It restarts its connection, and
            the server symbol at the lower edge turns green.
          </>,
        ]}
      />
      <Steps
        title="When it does not ask"
        steps={[
          <>
            <Path of={['☰', 'Settings', 'Network Preferences', 'Manage Server Connections']} />: choose the server that
            the package brought, and edit it.
          </>,
          <>
            Tick <strong>Use Authentication</strong> and <strong>Enroll for Client Certificate</strong>, type name and
            app password, and save.
          </>,
        ]}
      />
    </>
  ),
};
