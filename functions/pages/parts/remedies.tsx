// What to do next, with its commands to copy.

import { type RemedyPart, remedyParts } from '../../../shared/domain/remedy-parts.ts';
import { Copyable } from './card.tsx';

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
