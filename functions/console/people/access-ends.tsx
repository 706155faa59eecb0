// When access ends, as a field of a form: some ends by their names, or a day and a time by the clock of the stack.

import { AppError } from '@holdfast/kit/app-error';
import { wallTimeAt, wallTimeText } from '@holdfast/kit/time';
import { ACCESS_ENDS, accessEnd, presetEnd, readExpiry } from '../../../shared/identity/rules.ts';
import { type Clock, timeInZone } from '../../pages/clock.ts';
import type { Form } from '../../pages/form.ts';
import { Field, Select } from '../../pages/parts/field.tsx';

const NAMES: Record<(typeof ACCESS_ENDS)[number], string> = {
  never: 'Never',
  today: 'Today at 24:00',
  'days-2': 'In 2 days',
  'days-7': 'In 7 days',
  'days-30': 'In 30 days',
  date: 'At a time of your choice…',
};

interface AccessEndsProps {
  clock: Clock;
  /** What was sent, or what is shown at first. */
  choice: string;
  on: string;
  error?: string | undefined;
  /** Where a page has two of them. */
  id?: string;
  hint?: string;
}

export function AccessEnds({ clock, choice, on, error, id = 'ends', hint }: AccessEndsProps) {
  const choices = ACCESS_ENDS.map((value) => ({ value, label: labelOf(value, clock) }));
  return (
    <div class="ends">
      <Select name="ends" id={id} label="Access ends" value={choice} choices={choices} error={error} hint={hint} />
      <div class="on-date">
        <Field
          name="on"
          id={`${id}-on`}
          type="datetime-local"
          label="Day and time"
          hint={`By the clock of ${clock.timeZone}; only with “At a time of your choice”.`}
          value={on}
          min={wallTextOf(clock.now.toISOString(), clock)}
        />
      </div>
    </div>
  );
}

function labelOf(value: (typeof ACCESS_ENDS)[number], clock: Clock): string {
  const at = presetEnd(value, clock);
  if (at === undefined || value === 'today') return NAMES[value];
  return `${NAMES[value]}: ${timeInZone(at, clock.timeZone)}`;
}

/** As a field for a day and a time takes it. */
function wallTextOf(iso: string, { timeZone }: Clock): string {
  return wallTimeText(wallTimeAt(Date.parse(iso), timeZone));
}

/** What a form shows at first for somebody whose access ends then. */
export function endShown(end: string | null, clock: Clock): { choice: string; on: string } {
  return end === null ? { choice: 'never', on: '' } : { choice: 'date', on: wallTextOf(end, clock) };
}

/** What was chosen, ISO 8601 or null; the end that was shown stays as it is, to the second. */
export function endEntered(form: Form, clock: Clock, shown?: string | null): string | null {
  const entered = { choice: form.text('ends'), on: form.text('on') };
  if (typeof shown === 'string' && entered.choice === 'date' && entered.on === wallTextOf(shown, clock)) return shown;
  const read = accessEnd(entered, clock);
  if ('fault' in read) throw endFault(read.fault);
  if (read.at === null) return null;
  if ('fault' in readExpiry(read.at, clock.now))
    throw endFault(`${timeInZone(read.at, clock.timeZone)} is past; choose a time to come`);
  return read.at;
}

function endFault(message: string): AppError {
  return new AppError('invalid', `Access ends: ${message}`, { fields: [{ path: 'ends', message }] });
}

// A form of the person's page that was refused: it comes back open, with what was filled in.

/** The forms of the page; each has a path of its own. */
export type FormName = 'details' | 'expiry' | 'groups' | 'role' | 'password' | 'deactivate' | 'reactivate';

export interface Refusal {
  at: FormName;
  form: Form;
  error: AppError;
}
