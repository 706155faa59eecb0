// The CA of the core and its revocation list: what they are, and as files. Neither is a secret.

import type { Deps } from '../../shared/http/deps.ts';
import { safeFileName } from '../../shared/domain/data-package.ts';
import type { AuthorityCertificate, RevocationListContent } from '../../shared/ports/core-authority.ts';
import type { Clock } from '../pages/clock.ts';
import type { Attempt } from '../pages/form.ts';
import type { PageContext } from '../pages/page-routes.ts';
import { Card, Copyable, Facts } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { When } from '../pages/parts/time.tsx';

interface AuthorityCardProps {
  authority: Attempt<AuthorityCertificate>;
  list: Attempt<RevocationListContent>;
  clock: Clock;
}

export function AuthorityCard({ authority, list, clock }: AuthorityCardProps) {
  return (
    <Card title="The CA of this server">
      {authority.refused === undefined ? (
        <>
          <Facts
            of={{
              Fingerprint: <Copyable id="ca-fingerprint" text={authority.done.fingerprint} />,
              'Good until': <When at={authority.done.expiresAt} clock={clock} relative />,
            }}
          />
          <p>
            <a class="button small" href="/certificates/ca.pem" download="">
              CA certificate (PEM)
            </a>
          </p>
        </>
      ) : (
        <Missing>The CA cannot be read: {authority.refused.message}</Missing>
      )}
      <h3>Revocation list</h3>
      {list.refused === undefined ? (
        <>
          <Facts
            of={{
              Revoked: String(list.done.serials.length),
              Written: <When at={list.done.thisUpdate} clock={clock} relative />,
              'In force until': <When at={list.done.nextUpdate} clock={clock} never="it is replaced" />,
              Signature: list.done.ours ? 'by this CA' : 'not by this CA: nothing in it counts',
            }}
          />
          <p>
            <a class="button small" href="/certificates/crl.pem" download="">
              Revocation list (PEM)
            </a>
          </p>
        </>
      ) : (
        <Missing>The revocation list cannot be read: {list.refused.message}</Missing>
      )}
    </Card>
  );
}

export async function sendAuthority(c: PageContext, deps: Deps): Promise<Response> {
  const { chainPem } = await deps.coreAuthority.certificate();
  return sendPem(c, `${safeFileName(deps.place.name)}-ca.pem`, chainPem.map((pem) => `${pem.trim()}\n`).join(''));
}

export async function sendRevocationList(c: PageContext, deps: Deps): Promise<Response> {
  const { pem } = await deps.coreAuthority.revocationList();
  return sendPem(c, `${safeFileName(deps.place.name)}-crl.pem`, `${pem.trim()}\n`);
}

function sendPem(c: PageContext, name: string, text: string): Response {
  return c.body(text, 200, {
    'Content-Type': 'application/x-pem-file',
    'Content-Disposition': `attachment; filename="${name}"`,
    'Cache-Control': 'no-store',
  });
}
