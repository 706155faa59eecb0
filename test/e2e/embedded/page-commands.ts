// The commands of a page of docs/, in their order, as a program for bash on a stack of the tests.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

/** `here` has what stands in the page, once each, and what stands in its place on this stack. */
export function commandsOf(page: string, here: readonly (readonly [string, string])[]): string {
  const text = readFileSync(join(import.meta.dirname, '../../../docs', page), 'utf8');
  const blocks = [...text.matchAll(/```bash\n(.*?)```/gs)].map(([, commands = '']) => commands);
  return here.reduce(
    (commands, [there, own]) => {
      expect(commands.split(there)).toHaveLength(2);
      return commands.replace(there, () => own);
    },
    `set -euo pipefail\n${blocks.join('\n')}`,
  );
}
