// When access ends, as a field of a form: some ends by their names, or a day and a time by the clock of the stack.

import { AppError } from '@holdfast/kit/app-error';
import { wallTimeAt, wallTimeText } from '@holdfast/kit/time';
import { type PeopleContext, roleGroupsOf } from '../../../shared/devices/accounts.ts';
import { ACCESS_ENDS, accessEnd, presetEnd, readChannelName, readExpiry } from '../../../shared/identity/rules.ts';
import { createGroup } from '../../../shared/people/groups.ts';
import { attempt, type Form } from '../../pages/form.ts';
import { Checks, Field, Select } from '../../pages/parts/field.tsx';
import { type Clock, timeInZone } from '../../pages/parts/time.tsx';

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

/** The forms of the page; each has a path of its own. */
export type FormName = 'details' | 'expiry' | 'groups' | 'role' | 'password' | 'deactivate' | 'reactivate';

export interface Refusal {
  at: FormName;
  form: Form;
  error: AppError;
}

/** More than a phone shows at once. */
const MANY = 20;

interface GroupChecksProps {
  names: readonly string[];
  chosen: readonly string[];
  newGroup: string;
  error?: string | undefined;
  newGroupError?: string | undefined;
}

/**
 * Groups to tick, by their whole names; a new one can be made in the same form. Where there are many, a field narrows them.
 */
export function GroupChecks({ names, chosen, newGroup, error, newGroupError }: GroupChecksProps) {
  const choices = names.map((name) => ({ value: name, label: nameWithMeaning(name) }));
  const isMany = names.length > MANY;
  return (
    <div class="groups">
      {isMany ? (
        <div class="field when-scripted">
          <label for="group-filter">Show only groups with</label>
          <input id="group-filter" type="search" autocomplete="off" data-filter="group-choices" />
        </div>
      ) : null}
      <div id="group-choices" class={isMany ? 'many' : undefined}>
        <Checks
          legend="Groups"
          name="groups"
          choices={choices}
          chosen={chosen}
          error={error}
          hint={names.length === 0 ? 'There is none yet: make the first one below.' : undefined}
        />
      </div>
      <Field
        name="new_group"
        label="A new group, too"
        hint="Only if it is not there yet: its name, such as Blue."
        value={newGroup}
        error={newGroupError}
        maxlength={70}
        plain
      />
    </div>
  );
}

function nameWithMeaning(name: string): string {
  const meaning = directionOf(name);
  return meaning === undefined ? name : `${name} (${meaning})`;
}

/** What a suffix makes of membership; undefined where it goes both ways. */
export function directionOf(name: string): string | undefined {
  if (name.endsWith('_READ')) return 'receives only';
  return name.endsWith('_WRITE') ? 'sends only' : undefined;
}

/** Why there can be no such group, for the field that names a new one. */
export function newGroupFault(text: string, { settings }: Pick<PeopleContext['deps'], 'settings'>): string | undefined {
  if (text === '') return undefined;
  const read = readChannelName(text, roleGroupsOf({ settings }));
  return 'fault' in read ? read.fault : undefined;
}

/** The whole name of the group that is named, made unless there is one; nothing for an empty field. */
export async function groupNamed(context: PeopleContext, text: string): Promise<string[]> {
  if (text === '') return [];
  const read = readChannelName(text, roleGroupsOf(context.deps));
  if ('fault' in read)
    throw new AppError('invalid', `A new group: ${read.fault}`, {
      fields: [{ path: 'new_group', message: read.fault }],
    });
  const made = await attempt(() => createGroup(context, { name: text }));
  if (made.refused === undefined) return [made.done.name];
  if (made.refused.code === 'conflict') return [read.name];
  throw made.refused;
}

/** Those of a form, each once. */
export function together(...names: readonly (readonly string[])[]): string[] {
  return [...new Set(names.flat())];
}
