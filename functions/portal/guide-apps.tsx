// The setup guides for ATAK, iTAK and WinTAK.

import type { Child } from 'hono/jsx';
import { apiPortOf, streamingPortOf } from '../../shared/devices/links.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { needsPackage } from '../pages/enrollment/apps.ts';
import { attempt } from '../pages/form.ts';
import { Card } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';

/** The server and the reader of a guide. */
export interface GuideFacts extends ServerFacts {
  username: string;
  /** The path of the reader's package for an app. Undefined while the account is unknown. */
  packageFor(app: 'atak' | 'itak'): string | undefined;
}

export interface Guide {
  title: string;
  /** Shown in the list of guides. */
  about: string;
  body(facts: GuideFacts): Child;
}

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

/** Menu entries in the order of taps. */
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
    return <Missing>Couldn't offer the package: your account can't be looked up. Try again in a minute.</Missing>;
  return (
    <a class="button" href={path}>
      Download package
    </a>
  );
}

/** Explains when the package is needed. */
export function packageIntro({ linkIsEnough }: GuideFacts): Child {
  return linkIsEnough
    ? "This server has a public certificate, so the code is enough. You need the package below only if the device doesn't trust the server."
    : 'This server has a private certificate that devices do not know. The package adds it to the device, with address and ports. Without the package the code fails.';
}

/** The facts that a person types or compares to set up a device. */
export interface ServerFacts {
  /** The name that devices show for the server. */
  name: string;
  /** Undefined while SERVER_ADDRESS is not set. */
  host: string | undefined;
  enrollment: number;
  streaming: number;
  api: number;
  /** SHA-256 of the CA certificate. Undefined when it can't be read: `problem` is the reason. */
  fingerprint: string | undefined;
  problem: string | undefined;
  /**
   * True when devices trust the server without the package, and the link holds everything they
   * need.
   */
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

const INSTALL = 'Install ATAK-CIV, open it once, and allow access to files, location and notifications.';

export const atakGuide: Guide = {
  title: 'ATAK on Android',
  about: 'Phone or tablet with ATAK-CIV 5.1 or newer',
  body: (facts) => (
    <>
      {facts.linkIsEnough ? null : <Package facts={facts} />}
      <Steps
        title={facts.linkIsEnough ? '1. Scan the code' : '2. Scan the code'}
        {...(facts.linkIsEnough ? { intro: packageIntro(facts) } : {})}
        steps={[
          ...(facts.linkIsEnough ? [INSTALL] : []),
          <>
            On another screen, open <a href="/add-device">Add device</a> and choose ATAK. If you have only this device,
            tap the link there instead of scanning.
          </>,
          <>
            Point the phone's camera at the code and tap the link that appears. ATAK opens and asks to add the server.
          </>,
          <>Confirm. ATAK gets its certificate. Within a minute the plug icon at the bottom turns green.</>,
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
      title={facts.linkIsEnough ? 'If the server is not trusted' : '1. Open the package first'}
      intro={packageIntro(facts)}
      steps={[
        ...(facts.linkIsEnough ? [] : [INSTALL]),
        <>
          On the device: <PackageLink facts={facts} app="atak" />
        </>,
        <>
          In ATAK, tap <Path of={['☰', 'Import', 'Local SD']} /> and choose the file in Download. You can also tap the
          file in the list of downloads and open it with ATAK.
        </>,
        <>
          When ATAK asks for a username and password, type <code>{facts.username}</code> and the app password from{' '}
          <a href="/add-device">Add device</a>. Then you are done. You can also cancel and continue with the code.
        </>,
      ]}
    />
  );
}

function ByHand({ facts: { host = 'the address below', username, streaming, enrollment } }: { facts: GuideFacts }) {
  return (
    <details class="card" id="by-hand">
      <summary>Manual setup, without a code</summary>
      <ol class="guide-steps">
        <li>
          <Path of={['☰', 'Settings', 'Network Preferences', 'TAK Servers']} />, then <Path of={['⋮', 'Add']} />.
        </li>
        <li>
          Address: <code>{host}</code>. Select <strong>Use Authentication</strong> and{' '}
          <strong>Enroll for Client Certificate</strong>.
        </li>
        <li>
          Username: <code>{username}</code>. Password: the app password from <a href="/add-device">Add device</a>.
        </li>
        <li>
          Under <strong>Advanced Options</strong>, set protocol SSL, port <code>{String(streaming)}</code> and
          enrollment port <code>{String(enrollment)}</code>. If you imported the package, its truststore is already in
          use.
        </li>
      </ol>
    </details>
  );
}

/** iTAK on iPhone and iPad. Its code can't hold username and password, so these are typed. */
export const itakGuide: Guide = {
  title: 'iTAK on iPhone and iPad',
  about: 'Username and password are typed. For TAK Aware and TAK Tracker, choose TAK Aware under Add device',
  body: (facts) => {
    const scan = (
      <Steps
        title={facts.linkIsEnough ? 'Scan the code' : 'Then scan the code, if the package did not ask for a username'}
        steps={[
          <>
            On another screen, open <a href="/add-device">Add device</a> and choose iTAK.
          </>,
          <>
            In iTAK, tap <Path of={['Settings', 'Network', 'Servers', '+', 'Scan QR']} /> and scan the code. Scan it in
            iTAK: the phone's camera app can't read this code.
          </>,
          <>
            Type your username <code>{facts.username}</code> and the app password next to the code. It is not the
            password that you use to sign in here.
          </>,
          <>The server turns green in the list.</>,
        ]}
      />
    );
    const openPackage = (
      <Steps
        title={facts.linkIsEnough ? 'If the server is not trusted' : 'Open the package first'}
        intro={packageIntro(facts)}
        steps={[
          <>
            On the device: <PackageLink facts={facts} app="itak" />
          </>,
          <>
            In iTAK, tap <Path of={['Settings', 'Network', 'Servers', '+', 'Upload Server Package']} /> and choose the
            file in Downloads. Do not unzip it.
          </>,
          <>
            When iTAK asks, type your username <code>{facts.username}</code> and the app password from{' '}
            <a href="/add-device">Add device</a>.
          </>,
        ]}
      />
    );
    return facts.linkIsEnough ? (
      <>
        {scan}
        {openPackage}
      </>
    ) : (
      <>
        {openPackage}
        {scan}
      </>
    );
  },
};

/** WinTAK on Windows: the package, then username and password. */
export const winTakGuide: Guide = {
  title: 'WinTAK on Windows',
  about: 'Computer with WinTAK-CIV. Nothing to scan',
  body: (facts) => (
    <>
      <Steps
        title="Open the package"
        intro="It gives WinTAK this server's address, ports and certificate authority. It contains no key: WinTAK gets one with your username and the app password."
        steps={[
          <>
            On the computer: <PackageLink facts={facts} app="atak" />
          </>,
          <>
            In another window, open <a href="/add-device">Add device</a> and choose WinTAK. It shows the app password.
          </>,
          <>
            In WinTAK, open <Path of={['☰', 'Import Manager', 'Import File']} /> and choose the package. You can also
            drag it onto the map.
          </>,
          <>
            When WinTAK asks, type the username <code>{facts.username}</code> and the app password. It reconnects, and
            the server icon at the bottom turns green.
          </>,
        ]}
      />
      <Steps
        title="If WinTAK does not ask"
        steps={[
          <>
            Open <Path of={['☰', 'Settings', 'Network Preferences', 'Manage Server Connections']} />. Choose the server
            from the package and edit it.
          </>,
          <>
            Select <strong>Use Authentication</strong> and <strong>Enroll for Client Certificate</strong>. Type username
            and app password, and save.
          </>,
        ]}
      />
    </>
  ),
};
