// Notices, warnings, remedies, status badges and icons.

import type { Child } from 'hono/jsx';
import type { AppError } from '@holdfast/kit/app-error';
import { type RemedyPart, remedyParts } from '../../../shared/http/text.ts';
import type { Status } from '../../../shared/settings/status.ts';
import type { PageContext } from '../page-routes.ts';
import { Copyable } from './card.tsx';

const PATHS: Record<string, string> = {
  overview: 'M4 13h6V4H4zM14 20h6V4h-6zM4 20h6v-3H4z',
  home: 'M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2',
  devices: 'M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2',
  'add-device': 'M12 5v14M5 12h14',
  guides: 'M4 5a8 8 0 0 1 8 1.5A8 8 0 0 1 20 5v13a8 8 0 0 0-8 1.5A8 8 0 0 0 4 18zM12 6.5v13',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20a6 6 0 0 1 12 0M16 4.5a3.5 3.5 0 0 1 0 6.3M18 14.5a6 6 0 0 1 3 5.5',
  database:
    'M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zM4 6v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3',
  account: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0',
  more: 'M4 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0zM11 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0zM18 12a1 1 0 1 0 2 0 1 1 0 1 0-2 0z',
  ok: 'M5 12.5l4.5 4.5L19 7.5',
  note: 'M12 11v6M12 7.5h.01',
  warning: 'M12 8v5.5M12 17h.01M12 3L2.5 20.5h19z',
  critical: 'M7 7l10 10M17 7L7 17',
};

/** Renders nothing for an unknown name. */
export function Icon({ name }: { name: string }) {
  const path = PATHS[name];
  if (path === undefined) return null;
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={path} />
    </svg>
  );
}

interface NoticeProps {
  c: PageContext;
  /** The texts by the value of `?done=` in the address. */
  sentences: Readonly<Record<string, Child>>;
}

/** Confirms what the previous form did. */
export function Notice({ c, sentences }: NoticeProps) {
  const word = c.req.query('done') ?? '';
  if (!Object.hasOwn(sentences, word)) return null;
  return (
    <p class="notice good" role="status">
      {sentences[word]}
    </p>
  );
}

/** Shows why a request was refused. Renders nothing without an error. */
export function Problem({ error }: { error: AppError | undefined }) {
  if (error === undefined) return null;
  const { message, fields } = error;
  return (
    <div class="notice bad" role="alert">
      {fields.length > 1 ? (
        <>
          <p>Fix these problems:</p>
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

/** A warning that needs attention. */
export function Warning({ children }: { children: Child }) {
  return <div class="notice warn">{children}</div>;
}

/** Shown in place of data that could not be loaded. */
export function Missing({ children }: { children: Child }) {
  return <p class="notice missing">{children}</p>;
}

interface RemediesProps {
  /** The module's id, a prefix for the ids of the commands. */
  id: string;
  remedies: readonly string[];
}

/** A list of next steps with commands to copy. */
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

/**
 * A command at the end, after a colon, gets its own line with a copy button. Other commands stay in
 * their sentence.
 */
function Remedy({ id, parts }: { id: string; parts: readonly RemedyPart[] }) {
  return (
    <>
      {parts.map(({ kind, text }, at) => {
        if (kind === 'text') return isStandalone(parts, at - 1) ? text.replace(/^\.\s*/, '') : text;
        if (!isStandalone(parts, at)) return <code>{text}</code>;
        return <Copyable id={`${id}-${at}`} text={text} />;
      })}
    </>
  );
}

function isStandalone(parts: readonly RemedyPart[], at: number): boolean {
  if (parts[at]?.kind !== 'command') return false;
  const [before = ':', after = '.'] = [parts[at - 1]?.text.trimEnd(), parts[at + 1]?.text];
  return before.endsWith(':') && /^(?:\.|\. .*| \(.*)$/s.test(after);
}

const STATUS_TEXTS: Record<Status, string> = { ok: 'OK', note: 'Note', warning: 'Warning', critical: 'Critical' };

/** The text of a status. */
export function formatStatus(status: Status): string {
  return STATUS_TEXTS[status];
}

interface StatusBadgeProps {
  status: Status;
  /** Default: the text of the status. */
  children?: string | undefined;
}

export function StatusBadge({ status, children }: StatusBadgeProps) {
  return (
    <span class={`badge ${status}`}>
      <Icon name={status} />
      {children ?? STATUS_TEXTS[status]}
    </span>
  );
}
