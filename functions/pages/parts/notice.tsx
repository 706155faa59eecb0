// What a page says about what was just done: that it was, or why it was not.

import type { Child } from 'hono/jsx';
import type { AppError } from '@holdfast/kit/app-error';
import { type RemedyPart, remedyParts } from '../../../shared/http/text.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { Icon } from '../icons.tsx';
import type { PageContext } from '../page-routes.ts';
import { Copyable } from './card.tsx';

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

// What to do next, with its commands to copy.

interface RemediesProps {
  /** Of the module; the ids of the commands begin with it. */
  id: string;
  remedies: readonly string[];
}

export function Remedies({ id, remedies }: RemediesProps) {
  return (
    <ol class="remedies">
      {remedies.map((remedy, at) => (
        <li>
          <Remedy id={`${id}-${at}`} parts={remedyParts(remedy)} />
        </li>
      ))}
    </ol>
  );
}

/** A command that is all that follows a colon stands by itself with a button; another one is read in its sentence. */
function Remedy({ id, parts }: { id: string; parts: readonly RemedyPart[] }) {
  return (
    <>
      {parts.map(({ kind, text }, at) => {
        if (kind === 'text') return isStandingAlone(parts, at - 1) ? text.replace(/^\.\s*/, '') : text;
        if (!isStandingAlone(parts, at)) return <code>{text}</code>;
        return <Copyable id={`${id}-${at}`} text={text} />;
      })}
    </>
  );
}

function isStandingAlone(parts: readonly RemedyPart[], at: number): boolean {
  if (parts[at]?.kind !== 'command') return false;
  const [before = ':', after = '.'] = [parts[at - 1]?.text.trimEnd(), parts[at + 1]?.text];
  return before.endsWith(':') && /^(?:\.|\. .*| \(.*)$/s.test(after);
}

// How something is, in a drawing, a colour and a word: none of them alone.

const WORDS: Record<Status, string> = { ok: 'OK', note: 'Note', warning: 'Warning', critical: 'Critical' };

export function statusInWords(status: Status): string {
  return WORDS[status];
}

interface StatusBadgeProps {
  status: Status;
  /** Default: the word of the status. */
  children?: string | undefined;
}

export function StatusBadge({ status, children }: StatusBadgeProps) {
  return (
    <span class={`badge ${status}`}>
      <Icon name={status} />
      {children ?? WORDS[status]}
    </span>
  );
}
