// Shows the enrollment code and the steps for one app. The secret is only in the page: never in an
// address, a title, or a text that a screen reader announces.

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

/** Tabs for the apps, with the code and steps of the chosen one. */
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
        <Countdown until={token.expiresAt} clock={clockOf(deps)} over="Code expired" />
      </div>
      {comesFirst ? (
        <ol class="steps">
          <li>
            <PackageStep facts={facts} account={account} />
          </li>
        </ol>
      ) : null}
      <div class="enroll">
        {facts.code === undefined ? null : <Code text={links[facts.code]} label={facts.label} />}
        <Steps facts={facts} links={links} deps={deps} account={account} secret={key} start={comesFirst ? 2 : 1} />
      </div>
      <details id="server-facts">
        <summary>CA fingerprint</summary>
        <p class="fine">Compare it with the fingerprint on the device before you trust the server.</p>
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
  /** The number of the first step. */
  start: number;
}

function PackageStep({ facts, account }: Pick<StepsProps, 'facts' | 'account'>) {
  return (
    <>
      On the device, open this server's data package in {facts.label}. It contains the address and the CA.{' '}
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
            Already on that device? Tap this instead:{' '}
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
        When {facts.label} asks for a username and password, type these:
        <Credentials deps={deps} account={account} secret={secret} />
      </>,
    );
  steps.push('Wait. This page shows when the device has enrolled and when it is connected.');
  return (
    <div>
      <ol class="steps" start={start}>
        {steps.map((step) => (
          <li>{step}</li>
        ))}
      </ol>
      {facts.types ? null : (
        <details id="by-hand">
          <summary>Enter manually instead</summary>
          <Credentials deps={deps} account={account} secret={secret} />
        </details>
      )}
    </div>
  );
}

/** Server, username and password for the app. The password is collapsed. */
function Credentials({ deps, account, secret }: Pick<StepsProps, 'deps' | 'account' | 'secret'>) {
  const { CORE_STREAMING_URL: streaming, CORE_ENROLLMENT_PORT: enrollment } = deps.settings;
  return (
    <Facts
      of={{
        Server: <Copyable id="enroll-server" text={serverAddress(deps)} />,
        Ports: `${streamingPortOf(streaming)} (SSL), enrollment on ${enrollment}`,
        Username: <Copyable id="enroll-name" text={account.username} />,
        Password: (
          <details id="enroll-secret">
            <summary>Show app password</summary>
            <Copyable id="enroll-password" text={secret} />
          </details>
        ),
      }}
    />
  );
}

/** Shown without an active code: explains codes and offers to create one. */
export function NoCode({ deps, enrollee }: { deps: Deps; enrollee: Enrollee }) {
  const { path, access, account } = enrollee;
  const minutes = deps.settings.ENROLLMENT_TTL_MINUTES;
  const whose = access === 'own' ? 'your devices' : `devices of ${account.username}`;
  return (
    <section class="card" id="code" data-refresh="">
      <h2>No active code</h2>
      <p>
        A code can enroll {whose} for {minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`}. It
        works for several devices and for nothing but enrollment. You can cancel it at any time.
      </p>
      <form method="post" action={path}>
        <button type="submit">Create code</button>
      </form>
    </section>
  );
}

function CancelForm({ path }: { path: string }) {
  return (
    <Confirm label="Cancel enrollment…" action={`${path}/withdraw`} button="Cancel enrollment" id="withdraw">
      <p>The code and its password stop working immediately. Devices that have already enrolled stay connected.</p>
    </Confirm>
  );
}
