// The code that a phone scans, and the steps around it, for one app. The secret stands in the page alone: in no address, no
// title, and in nothing that a screen reader says by itself.

import { raw } from 'hono/html';
import type { Child } from 'hono/jsx';
import { qrSvg } from '@holdfast/kit/qr';
import type { IssuedEnrollment } from '../../../shared/devices/enrollment/issue.ts';
import { registrationIdOf } from '../../../shared/devices/enrollment/kept.ts';
import { type EnrollmentLinks, streamingPortOf } from '../../../shared/devices/links.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { linksOf, serverAddress } from '../../../shared/http/schemas/enrollment.ts';
import { Confirm, Copyable, Facts, Tabs } from '../parts/card.tsx';
import { clockOf, Countdown } from '../parts/time.tsx';
import { type AppFacts, APPS, type Enrollee, type EnrollmentApp, FACTS, needsPackage } from './apps.ts';

interface CodeCardProps {
  deps: Deps;
  issued: IssuedEnrollment;
  app: EnrollmentApp;
  enrollee: Enrollee;
}

/** The apps beside each other, and the chosen one's way in. */
export function CodeCard({ deps, issued, app, enrollee }: CodeCardProps) {
  const { token, key } = issued;
  const { account, path } = enrollee;
  const facts = FACTS[app];
  const links = linksOf(deps, {
    username: account.username,
    registrationId: registrationIdOf(token.identifier),
    key,
    host: serverAddress(deps),
  });
  const comesFirst = facts.package !== undefined && (facts.code === undefined || needsPackage(deps));
  const tabs = APPS.map((each) => [`${path}?app=${each}`, FACTS[each].label] as const);
  return (
    <section class="card" id="code" data-refresh="">
      <Tabs label="App" tabs={tabs} current={`${path}?app=${app}`} />
      <div class="head">
        <h2>
          {facts.label} <span class="fine">({facts.runsOn})</span>
        </h2>
        <Countdown until={token.expiresAt} clock={clockOf(deps)} over="The code has ended" />
      </div>
      {comesFirst ? (
        <ol class="steps">
          <li>
            <First facts={facts} account={account} />
          </li>
        </ol>
      ) : null}
      <div class="enroll">
        {facts.code === undefined ? null : <Code text={links[facts.code]} label={facts.label} />}
        <Steps facts={facts} links={links} deps={deps} account={account} secret={key} start={comesFirst ? 2 : 1} />
      </div>
      <details id="server-facts">
        <summary>Fingerprint of this server's CA</summary>
        <p class="fine">What the phone shows when it asks whether to trust the server must be the same.</p>
        <Copyable id="ca-fingerprint" text={token.caFingerprint} />
      </details>
      <CancelForm path={path} />
    </section>
  );
}

function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="qr" role="img" aria-label={`QR code to scan with ${label}`}>
      {raw(qrSvg(text))}
    </div>
  );
}

interface StepsProps {
  facts: AppFacts;
  links: EnrollmentLinks;
  deps: Deps;
  account: Enrollee['account'];
  secret: string;
  /** The number of the first of them. */
  start: number;
}

function First({ facts, account }: Pick<StepsProps, 'facts' | 'account'>) {
  return (
    <>
      Open this server's data package on the device, in {facts.label}: it brings the address and the CA.{' '}
      <a class="button small" href={`/api/users/${account.id}/enrollment/package?app=${facts.package}`} download="">
        Data package
      </a>
    </>
  );
}

function Steps({ facts, links, deps, account, secret, start }: StepsProps) {
  const steps: Child[] = [];
  if (facts.code !== undefined)
    steps.push(
      <>
        {facts.scan}
        {facts.opensLink ? (
          <>
            {' '}
            On that phone itself, tap this instead:{' '}
            <a class="button small" href={links.atak}>
              Open in {facts.label}
            </a>
          </>
        ) : null}
      </>,
    );
  if (facts.types)
    steps.push(
      <>
        {facts.label} asks for name and password: type these two.
        <Typed deps={deps} account={account} secret={secret} />
      </>,
    );
  steps.push('Wait: this page says when the device has its certificate, and when it is connected.');
  return (
    <div>
      <ol class="steps" start={start}>
        {steps.map((step) => (
          <li>{step}</li>
        ))}
      </ol>
      {facts.types ? null : (
        <details id="by-hand">
          <summary>It does not scan: type it instead</summary>
          <Typed deps={deps} account={account} secret={secret} />
        </details>
      )}
    </div>
  );
}

/** Name and password for the app; the password only when it is asked for. */
function Typed({ deps, account, secret }: Pick<StepsProps, 'deps' | 'account' | 'secret'>) {
  const { CORE_STREAMING_URL: streaming, CORE_ENROLLMENT_PORT: enrollment } = deps.settings;
  return (
    <Facts
      of={{
        Server: <Copyable id="enroll-server" text={serverAddress(deps)} />,
        Ports: `${streamingPortOf(streaming)} (SSL), enrollment on ${enrollment}`,
        Name: <Copyable id="enroll-name" text={account.username} />,
        Password: (
          <details id="enroll-secret">
            <summary>Show the app password</summary>
            <Copyable id="enroll-password" text={secret} />
          </details>
        ),
      }}
    />
  );
}

/** There is none that is good: what it is, and the button that makes one. */
export function NoCode({ deps, enrollee }: { deps: Deps; enrollee: Enrollee }) {
  const { path, access, account } = enrollee;
  const minutes = deps.settings.ENROLLMENT_TTL_MINUTES;
  const whose = access === 'own' ? 'your devices' : `devices of ${account.username}`;
  return (
    <section class="card" id="code" data-refresh="">
      <h2>No code is valid now</h2>
      <p>
        A code lets {whose} in for {minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`}. One
        code serves several devices. It opens nothing but the enrollment, and can be taken back at any time.
      </p>
      <form method="post" action={path}>
        <button type="submit">Show the code</button>
      </form>
    </section>
  );
}

function CancelForm({ path }: { path: string }) {
  return (
    <Confirm label="Take the code back…" action={`${path}/withdraw`} button="Take it back" id="withdraw">
      <p>The code and its password stop working at once. Devices that are enrolled already stay.</p>
    </Confirm>
  );
}
