// What guides are made of: numbered steps, and the package that brings a device the CA and the address.

import type { Child } from 'hono/jsx';
import { Card } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import type { GuideFacts } from './guide.ts';

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
