// Groups to tick, by their whole names; a new one can be made in the same form. Where there are many, a field narrows them.

import { AppError } from '@holdfast/kit/app-error';
import { type PeopleContext, roleGroupsOf } from '../../../shared/devices/accounts.ts';
import { readChannelName } from '../../../shared/identity/channels.ts';
import { createGroup } from '../../../shared/people/groups.ts';
import { attempt } from '../../pages/form.ts';
import { Checks, Field } from '../../pages/parts/field.tsx';

/** More than a phone shows at once. */
const MANY = 20;

interface GroupChecksProps {
  names: readonly string[];
  chosen: readonly string[];
  newGroup: string;
  error?: string | undefined;
  newGroupError?: string | undefined;
}

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
