// /certificates/new: a certificate for a program, or for a phone that cannot enroll, with a key that Holdfast makes.

import type { AppError } from '@holdfast/kit/app-error';
import { BUNDLE_PASSWORD } from '../../../shared/devices/certificates/data-package.ts';
import { issueCertificate, type IssuedCertificate } from '../../../shared/devices/certificates/issue.ts';
import { actingIn } from '../../../shared/http/acting.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { certificatePath } from '../../pages/certificates/list.tsx';
import { attempt, faultOf, formOf } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Field } from '../../pages/parts/field.tsx';
import { Problem, Warning } from '../../pages/parts/notice.tsx';

interface Wanted {
  username: string;
  name: string;
}

/** Adds the routes of this file. */
export function certificateNewPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  const demand = { access: 'admin', area: 'people' } as const;

  pages.get('/certificates/new', demand, function showForm(c) {
    return showPage(c, deps, { username: (c.req.query('username') ?? '').slice(0, 64), name: '' });
  });

  pages.post('/certificates/new', demand, async function issue(c) {
    const form = await formOf(c);
    const wanted = { username: form.text('username'), name: form.text('name') };
    const tried = await attempt(() => issueCertificate(actingIn(c, deps), wanted));
    if (tried.refused !== undefined) return showPage(c, deps, wanted, tried.refused);
    const { p12_base64: bundle } = tried.done;
    if (bundle !== undefined) return showOnce(c, deps, tried.done, bundle);
    return goTo(c, `${certificatePath(tried.done)}?done=issued`);
  });
}

function showPage(c: PageContext, deps: Deps, { username, name }: Wanted, refused?: AppError): Promise<Response> {
  const body = (
    <>
      <Problem error={refused} />
      <p>
        For a program, or a device that cannot enroll. A phone with ATAK, iTAK or TAK Aware enrolls by itself: choose{' '}
        <a href="/people">the person</a>, then “Enroll a device”.
      </p>
      <form method="post" action="/certificates/new" class="card narrow">
        <Field
          name="username"
          label="Person"
          hint="The name that this person signs in with."
          value={username}
          error={faultOf(refused, 'username')}
          required
          plain
          maxlength={64}
          autocomplete="off"
        />
        <Field
          name="name"
          label="Name of the certificate"
          hint="What it is for, such as laptop or gateway. Letters, digits and . _ - without blanks."
          value={name}
          error={faultOf(refused, 'name')}
          required
          plain
          maxlength={64}
          pattern="[A-Za-z0-9._\-]{1,64}"
          title="Letters, digits and . _ - without blanks"
          autocomplete="off"
        />
        <button type="submit">Issue it</button>
      </form>
    </>
  );
  return framed(c, deps, { title: 'Issue a certificate', current: 'certificates', body, refused });
}

/** Keys are not kept: nobody can make this file again. */
function showOnce(c: PageContext, deps: Deps, issued: IssuedCertificate, bundle: string): Promise<Response> {
  const body = (
    <>
      <Warning>
        <p>Save this file now: keys are not kept on this server, and it is shown nowhere again.</p>
      </Warning>
      <section class="card">
        <p>
          Its password is <code>{BUNDLE_PASSWORD}</code>, which everybody knows: whoever has the file comes in as{' '}
          {issued.username}.
        </p>
        <a class="button primary" href={`data:application/x-pkcs12;base64,${bundle}`} download={issued.file}>
          Save {issued.file}
        </a>
      </section>
      <p>
        <a href={certificatePath(issued)}>I have it: on to the certificate</a>
      </p>
    </>
  );
  return framed(c, deps, { title: 'The certificate is issued', current: 'certificates', body });
}
