// How something is, in a drawing, a colour and a word: none of them alone.

import type { Status } from '../../../shared/domain/status.ts';
import { Icon } from '../icons.tsx';

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
