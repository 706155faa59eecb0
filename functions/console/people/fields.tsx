// Form fields of a person: when access expires, and the groups.

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
  date: 'Choose date and time…',
};

interface AccessEndsProps {
  clock: Clock;
  /** The submitted value, or the initial one. */
  choice: string;
  on: string;
  error?: string | undefined;
  /** Set it where a page shows the field twice. */
  id?: string;
  hint?: string;
}

export function AccessEnds({ clock, choice, on, error, id = 'ends', hint }: AccessEndsProps) {
  const choices = ACCESS_ENDS.map((value) => ({ value, label: labelOf(value, clock) }));
  return (
    <div class="ends">
      <Select name="ends" id={id} label="Access expires" value={choice} choices={choices} error={error} hint={hint} />
      <div class="on-date">
        <Field
          name="on"
          id={`${id}-on`}
          type="datetime-local"
          label="Date and time"
          hint={`In ${clock.timeZone}. Used only with “Choose date and time”.`}
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

/** The value of a `datetime-local` field. */
function wallTextOf(iso: string, { timeZone }: Clock): string {
  return wallTimeText(wallTimeAt(Date.parse(iso), timeZone));
}

/** The initial values of the field for an access that expires at `end`. */
export function endShown(end: string | null, clock: Clock): { choice: string; on: string } {
  return end === null ? { choice: 'never', on: '' } : { choice: 'date', on: wallTextOf(end, clock) };
}

/**
 * The entered expiry, ISO 8601 or null. An unchanged date keeps the seconds of `shown`. Throws
 * `invalid`.
 */
export function endEntered(form: Form, clock: Clock, shown?: string | null): string | null {
  const entered = { choice: form.text('ends'), on: form.text('on') };
  if (typeof shown === 'string' && entered.choice === 'date' && entered.on === wallTextOf(shown, clock)) return shown;
  const read = accessEnd(entered, clock);
  if ('fault' in read) throw endFault(read.fault);
  if (read.at === null) return null;
  if ('fault' in readExpiry(read.at, clock.now))
    throw endFault(`${timeInZone(read.at, clock.timeZone)} is in the past. Choose a later time.`);
  return read.at;
}

export function endFault(message: string): AppError {
  return new AppError('invalid', `Access expires: ${message}`, { fields: [{ path: 'ends', message }] });
}

/** The forms of a person's page. Each has its own path. */
export type FormName = 'details' | 'expiry' | 'groups' | 'role' | 'password' | 'deactivate' | 'reactivate';

export interface Refusal {
  at: FormName;
  form: Form;
  error: AppError;
}

/** More groups than this get a filter field. */
const MANY = 20;

interface GroupChecksProps {
  names: readonly string[];
  chosen: readonly string[];
  newGroup: string;
  error?: string | undefined;
  newGroupError?: string | undefined;
}

/**
 * Checkboxes for groups, by their full names, and a field that creates a new group.
 */
export function GroupChecks({ names, chosen, newGroup, error, newGroupError }: GroupChecksProps) {
  const choices = names.map((name) => ({ value: name, label: nameWithMeaning(name) }));
  const isMany = names.length > MANY;
  return (
    <div class="groups">
      {isMany ? (
        <div class="field when-scripted">
          <label for="group-filter">Filter groups</label>
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
          hint={names.length === 0 ? 'No groups yet. Add the first one below.' : undefined}
        />
      </div>
      <Field
        name="new_group"
        label="New group"
        hint="Optional. Enter a name such as Blue to add a group."
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

/** The direction that a name's suffix sets for its members; undefined for both directions. */
export function directionOf(name: string): string | undefined {
  if (name.endsWith('_READ')) return 'receive only';
  return name.endsWith('_WRITE') ? 'send only' : undefined;
}

/** Why a new group can't have this name; undefined when it can, or when the field is empty. */
export function newGroupFault(text: string, { settings }: Pick<PeopleContext['deps'], 'settings'>): string | undefined {
  if (text === '') return undefined;
  const read = readChannelName(text, roleGroupsOf({ settings }));
  return 'fault' in read ? read.fault : undefined;
}

/**
 * The full name of the named group, created unless it exists. An empty field gives no name. Throws
 * `invalid`.
 */
export async function groupNamed(context: PeopleContext, text: string): Promise<string[]> {
  if (text === '') return [];
  const read = readChannelName(text, roleGroupsOf(context.deps));
  if ('fault' in read)
    throw new AppError('invalid', `New group: ${read.fault}`, {
      fields: [{ path: 'new_group', message: read.fault }],
    });
  const made = await attempt(() => createGroup(context, { name: text }));
  if (made.refused === undefined) return [made.done.name];
  if (made.refused.code === 'conflict') return [read.name];
  throw made.refused;
}

/** All names, without duplicates. */
export function mergeNames(...names: readonly (readonly string[])[]): string[] {
  return [...new Set(names.flat())];
}
