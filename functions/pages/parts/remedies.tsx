// What to do next, with its commands to copy.

import { remedyParts } from '../../../shared/domain/remedy-parts.ts';
import { Copyable } from './card.tsx';

interface RemediesProps {
  /** Of the module; the ids of the commands begin with it. */
  id: string;
  remedies: readonly string[];
}

/** Shorter ones are read in their sentence. */
const WORTH_COPYING = 16;

export function Remedies({ id, remedies }: RemediesProps) {
  return (
    <ol class="remedies">
      {remedies.map((remedy, at) => (
        <li>
          {remedyParts(remedy).map(({ kind, text }, part) => {
            if (kind === 'text') return text;
            if (text.length < WORTH_COPYING) return <code>{text}</code>;
            return <Copyable id={`${id}-${at}-${part}`} text={text} />;
          })}
        </li>
      ))}
    </ol>
  );
}
