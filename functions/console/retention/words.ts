// The types of retention as people know them, and their figures in words.

import { counted, grouped } from '@holdfast/kit/format';
import { DAYS_VARIABLES, OWNED_TYPES, type Retained, shownDays } from '@holdfast/kit/retention';
import type { PreviewedType } from '../../../shared/retention/preview.ts';

interface TypeWords {
  /** `Positions and events`. */
  name: string;
  what: string;
}

export const TYPE_WORDS: Readonly<Record<Retained, TypeWords>> = {
  cot: { name: 'Positions and events', what: 'Where everybody was, markers and alerts: the history of the map (cot).' },
  geochat: { name: 'Chat', what: 'Messages between people and groups (geochat).' },
  files: { name: 'Files', what: 'Pictures and documents that somebody has uploaded (files).' },
  missionpackages: { name: 'Data packages', what: 'Mission packages that somebody has shared (missionpackages).' },
  missions: { name: 'Missions', what: 'Data Sync missions, with their events and files (missions).' },
};

/** `1 row`, `about 1,234 rows`. */
export function rowsInWords(count: number, exact = true, thing = 'row'): string {
  return `${exact ? '' : 'about '}${grouped(count)} ${thing}${count === 1 ? '' : 's'}`;
}

/** `30 days`, `for ever`. */
export function keptInWords(days: number | null): string {
  return days === null ? 'for ever' : counted(shownDays(days), 'day');
}

/** With what goes with missions. */
export function allRowsOf({ rows, included }: Pick<PreviewedType, 'rows' | 'included'>): number {
  return rows + included.cot + included.files;
}

/** The variable that sets the days of this type, where one can. */
export function variableOf(type: Retained): string | undefined {
  const owned = OWNED_TYPES.find((each) => each === type);
  return owned && DAYS_VARIABLES[owned];
}
