// What a page says about what was just done: that it was, or why it was not.

import type { Child } from 'hono/jsx';
import type { AppError } from '../../../shared/domain/app-error.ts';
import type { PageContext } from '../page-routes.ts';

interface NoticeProps {
  c: PageContext;
  /** What `?done=` of the address may name. */
  sentences: Readonly<Record<string, Child>>;
}

/** What the form before this page has done. */
export function Notice({ c, sentences }: NoticeProps) {
  const word = c.req.query('done') ?? '';
  if (!Object.hasOwn(sentences, word)) return null;
  return (
    <p class="notice good" role="status">
      {sentences[word]}
    </p>
  );
}

/** Why it was not done; nothing when nothing was refused. */
export function Problem({ error }: { error: AppError | undefined }) {
  if (error === undefined) return null;
  const { message, fields } = error;
  return (
    <div class="notice bad" role="alert">
      {fields.length > 1 ? (
        <>
          <p>This cannot be done as it stands:</p>
          <ul>
            {fields.map(({ path, message: fault }) => (
              <li>
                {path === '' ? '' : `${path}: `}
                {fault}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p>{message}</p>
      )}
    </div>
  );
}

/** Something to know before it is missed. */
export function Warning({ children }: { children: Child }) {
  return <div class="notice warn">{children}</div>;
}

/** What one outside system did not give, in its place. */
export function Missing({ children }: { children: Child }) {
  return <p class="notice missing">{children}</p>;
}
