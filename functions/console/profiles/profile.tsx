// GET, POST /profiles/:id: one profile with its files and preferences, and their changes.

import { z } from '@hono/zod-openapi';
import type { AppError } from '@holdfast/kit/app-error';
import { formatBytes } from '@holdfast/kit/format';
import { deviceGroupName } from '@holdfast/kit/names';
import {
  addProfileFile,
  changeProfile,
  deleteProfile,
  deleteProfileFile,
  profileOf,
  setPreferences,
} from '../../../shared/core/contents/change.ts';
import { type DeviceProfile, PROFILE_TYPES, type ProfileFile } from '../../../shared/core/contents/port.ts';
import { PREFERENCES_FILE, preferencesText } from '../../../shared/core/contents/rules.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { channelNames } from '../../../shared/people/groups.ts';
import { type Attempt, attempt, faultOf, type Form, formOf, parsed } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card, Confirm, Facts } from '../../pages/parts/card.tsx';
import { Checks, Field, FileField, TextArea } from '../../pages/parts/field.tsx';
import { Missing, Notice, Problem } from '../../pages/parts/notice.tsx';
import { Empty, Table } from '../../pages/parts/table.tsx';
import { formatProfileGroups, PROFILE_TYPE_NAMES, ProfileStatus } from './profiles.tsx';

const PATH = '/profiles';
const ALL = 'all';
const DONE = {
  added: 'Profile added. Choose its groups, add files, then turn it on.',
  changed: 'Profile changed. Devices apply it the next time.',
  file: 'File saved. Devices get it the next time that they apply the profile.',
  removed: 'File deleted. Devices that have it keep it.',
};

const changeSchema = z
  .object({
    active: z.boolean(),
    type: z.enum(PROFILE_TYPES),
    tool: z.string().max(100, 'must have at most 100 characters'),
    groups: z.array(z.string().max(100)).max(200),
  })
  .refine(({ type, tool }) => type !== 'Tool' || tool !== '', { path: ['tool'], message: 'must name the tool' });

/** Adds the routes of this file. */
export function profilePage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);
  const idOf = (c: PageContext): string => c.req.param('id') ?? '';
  const respond = async (c: PageContext, { refused }: Attempt<unknown>, done: string, form?: Form) =>
    refused === undefined ? goTo(c, `${PATH}/${idOf(c)}?done=${done}`) : showProfile(c, deps, { refused, form });

  pages.get(`${PATH}/:id`, { access: 'viewer' }, function showOne(c) {
    return showProfile(c, deps);
  });

  pages.post(`${PATH}/:id`, { access: 'admin' }, async function change(c) {
    const form = await formOf(c);
    const result = await attempt(() => changeProfile(actingIn(c, deps), idOf(c), changeIn(form)));
    return respond(c, result, 'changed', form);
  });

  pages.post(`${PATH}/:id/preferences`, { access: 'admin' }, async function change(c) {
    const form = await formOf(c);
    const result = await attempt(() => setPreferences(actingIn(c, deps), idOf(c), form.exact('preferences')));
    return respond(c, result, 'file', form);
  });

  pages.upload(`${PATH}/:id/files`, { access: 'admin' }, async function add(c, upload) {
    return respond(c, await attempt(() => addProfileFile(actingIn(c, deps), idOf(c), upload), 'too_large'), 'file');
  });

  pages.post(`${PATH}/:id/files/:file/delete`, { access: 'admin' }, async function removeFile(c) {
    const file = Number(c.req.param('file'));
    return respond(c, await attempt(() => deleteProfileFile(actingIn(c, deps), idOf(c), file)), 'removed');
  });

  pages.post(`${PATH}/:id/delete`, { access: 'admin' }, async function remove(c) {
    const { refused } = await attempt(() => deleteProfile(actingIn(c, deps), idOf(c)));
    return refused === undefined ? goTo(c, `${PATH}?done=deleted`) : showProfile(c, deps, { refused });
  });
}

function changeIn(form: Form) {
  const groups = form.all('groups');
  const { tool, ...read } = parsed(changeSchema, {
    active: form.has('active'),
    type: form.text('type'),
    tool: form.text('tool'),
    groups,
  });
  return { ...read, tool: read.type === 'Tool' ? tool : null, groups: groups.includes(ALL) ? ALL : groups } as const;
}

interface Retry {
  form?: Form | undefined;
  refused?: AppError;
}

async function showProfile(c: PageContext, deps: Deps, { form, refused }: Retry = {}): Promise<Response> {
  const profile = await profileOf(deps, c.req.param('id') ?? '');
  const files = await deps.coreContents.profileFiles(profile.name);
  const mayChange = isAdmin(c);
  const kept = files.find(({ name }) => name === PREFERENCES_FILE);
  const [channels, preferences] = await Promise.all([
    mayChange ? attempt(() => channelNames(deps)) : { done: [] },
    kept === undefined ? '' : deps.coreContents.readProfileFile(profile.name, kept.id).then(preferencesText),
  ]);
  const body = (
    <>
      <p>
        <a href={PATH}>All profiles</a>
      </p>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      <section class="card">
        <Facts
          of={{
            Status: <ProfileStatus profile={profile} />,
            Applied: PROFILE_TYPE_NAMES[profile.type],
            Tool: profile.tool ?? undefined,
            Groups: formatProfileGroups(profile),
          }}
        />
      </section>
      {mayChange ? <ChangeForm profile={profile} channels={channels} form={form} refused={refused} /> : null}
      <Files profile={profile} files={files} mayChange={mayChange} />
      <Preferences
        profile={profile}
        text={form?.exact('preferences') || preferences}
        refused={refused}
        mayChange={mayChange}
      />
      {mayChange ? (
        <Confirm
          id="delete"
          label="Delete…"
          of={profile.name}
          action={`${PATH}/${profile.id}/delete`}
          button={`Delete ${profile.name}`}
        >
          <p>The profile and its files are deleted. Devices keep what they have applied.</p>
        </Confirm>
      ) : null}
    </>
  );
  const heading = <bdi>{profile.name}</bdi>;
  return framed(c, deps, { title: profile.name, heading, current: 'profiles', body, refused });
}

interface ChangeFormProps {
  profile: DeviceProfile;
  channels: Attempt<string[]>;
  form: Form | undefined;
  refused: AppError | undefined;
}

function ChangeForm({ profile, channels, form, refused }: ChangeFormProps) {
  const isSent = form?.has('type') === true;
  const own = profile.groups === 'all' ? [ALL] : profile.groups;
  const known = (channels.done ?? []).map(deviceGroupName);
  const names = [...new Set([...known, ...own.filter((name) => name !== ALL)])];
  return (
    <Card title="Change profile">
      {channels.refused === undefined ? null : <Missing>Couldn't load the groups. {channels.refused.message}</Missing>}
      <form method="post" action={`${PATH}/${profile.id}`} class="narrow">
        <Checks
          legend="Status"
          name="active"
          choices={[{ value: 'yes', label: 'Active: devices apply it' }]}
          chosen={(isSent ? form.has('active') : profile.active) ? ['yes'] : []}
        />
        <Checks
          legend="Applied"
          name="type"
          type="radio"
          choices={PROFILE_TYPES.map((value) => ({ value, label: PROFILE_TYPE_NAMES[value] }))}
          chosen={[isSent ? form.text('type') : profile.type]}
          error={faultOf(refused, 'type')}
        />
        <Field
          name="tool"
          label="Tool"
          hint="Only for profiles that a tool asks for."
          value={isSent ? form.text('tool') : (profile.tool ?? '')}
          error={faultOf(refused, 'tool')}
          maxlength={100}
          plain
        />
        <Checks
          legend="Groups"
          hint="Devices of people who receive from one of these groups."
          name="groups"
          choices={[{ value: ALL, label: 'All groups' }, ...names.map((value) => ({ value, label: value }))]}
          chosen={isSent ? form.all('groups') : own}
          error={faultOf(refused, 'groups')}
        />
        <button type="submit">Save</button>
      </form>
    </Card>
  );
}

interface FilesProps {
  profile: DeviceProfile;
  files: readonly ProfileFile[];
  mayChange: boolean;
}

function Files({ profile: { id }, files, mayChange }: FilesProps) {
  const columns = [
    { label: 'File' },
    { label: 'Size', numeric: true },
    ...(mayChange ? [{ label: 'Actions', silent: true }] : []),
  ];
  const rows = files.map((file) => [
    <bdi>{file.name}</bdi>,
    file.bytes === null ? '' : formatBytes(file.bytes),
    ...(mayChange
      ? [
          <form method="post" action={`${PATH}/${id}/files/${file.id}/delete`}>
            <button type="submit" class="quiet">
              Delete <span class="silent">{file.name}</span>
            </button>
          </form>,
        ]
      : []),
  ]);
  return (
    <Card title="Files">
      {files.length === 0 ? (
        <Empty>
          <p>No files yet. Maps, icon sets, preferences and data packages work.</p>
        </Empty>
      ) : (
        <Table caption="Files of the profile" columns={columns} rows={rows} />
      )}
      {mayChange ? (
        <form method="post" action={`${PATH}/${id}/files`} enctype="multipart/form-data" class="narrow">
          <FileField name="file" label="File" hint="At most 10 MB. A file of the same name is replaced." required />
          <button type="submit">Upload file</button>
        </form>
      ) : null}
    </Card>
  );
}

interface PreferencesProps {
  profile: DeviceProfile;
  text: string;
  refused: AppError | undefined;
  mayChange: boolean;
}

function Preferences({ profile: { id }, text, refused, mayChange }: PreferencesProps) {
  return (
    <Card title="Preferences">
      {mayChange ? (
        <form method="post" action={`${PATH}/${id}/preferences`} class="narrow">
          <TextArea
            name="preferences"
            label="Preferences of ATAK"
            hint={`One on each line: name = value. true and false are Boolean, everything else is text. (Integer) name = 5 names another type. They are saved as ${PREFERENCES_FILE}.`}
            value={text}
            error={faultOf(refused, 'preferences')}
            rows={6}
          />
          <button type="submit">Save preferences</button>
        </form>
      ) : text === '' ? (
        <p>None.</p>
      ) : (
        <pre>{text}</pre>
      )}
    </Card>
  );
}
