// ATAK on Android: the package where it is needed, then the code; by hand when the code cannot be scanned.

import type { Guide, GuideFacts } from './guide.ts';
import { PackageLink, Path, Steps, whyPackage } from './guide-steps.tsx';

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
