// The two kinds of vacuum in two sentences each: what stops meanwhile, and what comes of it.

import type { VacuumMode } from '../../shared/ports/vacuum-facts.ts';
import { Card } from '../pages/parts/card.tsx';

export const MODE_NAMES: Record<VacuumMode, string> = { standard: 'Standard vacuum', full: 'Full vacuum' };

export const MODE_WORDS: Record<VacuumMode, string> = {
  standard:
    'Makes the room of deleted rows usable again inside the database; nobody is kept waiting, and it can be done at any time. The files do not get smaller, but they stop growing for a while.',
  full: 'Writes each table anew and gives its unused room back to the disk. While a table is written, everybody who needs it waits: clients get no positions and no chat out of it until it is done, and meanwhile the disk must hold a copy of it.',
};

/** For those who cannot choose. */
export function WhatModesDo() {
  return (
    <div class="cards">
      {(['standard', 'full'] as const).map((mode) => (
        <Card title={MODE_NAMES[mode]}>
          <p>{MODE_WORDS[mode]}</p>
        </Card>
      ))}
    </div>
  );
}
