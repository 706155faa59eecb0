// GET, POST /profiles: lists the profiles that devices apply, and adds one.

import { z } from '@hono/zod-openapi';
import type { AppError } from '@holdfast/kit/app-error';
import { addProfile } from '../../../shared/core/contents/change.ts';
import type { DeviceProfile, ProfileType } from '../../../shared/core/contents/port.ts';
import type { App } from '../../../shared/http/context.ts';
import type { Deps } from '../../../shared/http/deps.ts';
import { goTo } from '../../../shared/http/page.tsx';
import { actingIn } from '../../../shared/http/sign-in.ts';
import { attempt, faultOf, type Form, formOf, parsed } from '../../pages/form.ts';
import { framed } from '../../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../../pages/page-routes.ts';
import { Card } from '../../pages/parts/card.tsx';
import { Field } from '../../pages/parts/field.tsx';
import { Missing, Notice, Problem, StatusBadge } from '../../pages/parts/notice.tsx';
import { Empty, Table } from '../../pages/parts/table.tsx';
import { clockOf, When } from '../../pages/parts/time.tsx';

const PATH = '/profiles';

export const PROFILE_TYPE_NAMES: Record<ProfileType, string> = {
  Enrollment: 'After enrollment',
  Connection: 'At every connection',
  Tool: 'When a tool asks',
};

const nameSchema = z.object({
  name: z
    .string()
    .min(1, 'must not be empty')
    .max(100, 'must have at most 100 characters')
    .regex(/^[\w .()-]+$/u, 'may have letters, digits, spaces, dots, parentheses, hyphens and underscores'),
});

/** Adds the routes of this file. */
export function profilesPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'viewer' }, function listAll(c) {
    return showProfiles(c, deps);
  });

  pages.post(PATH, { access: 'admin' }, async function create(c) {
    const form = await formOf(c);
    const made = await attempt(async () =>
      addProfile(actingIn(c, deps), parsed(nameSchema, { name: form.text('name') }).name),
    );
    if (made.refused !== undefined) return showProfiles(c, deps, { form, refused: made.refused });
    return goTo(c, `${PATH}/${made.done.id}?done=added`);
  });
}

interface Retry {
  form?: Form;
  refused?: AppError;
}

async function showProfiles(c: PageContext, deps: Deps, { form, refused }: Retry = {}): Promise<Response> {
  const list = await attempt(() => deps.coreContents.profiles());
  const body = (
    <>
      <Notice c={c} sentences={{ deleted: 'Profile deleted. Devices keep the files that they have.' }} />
      <Problem error={refused} />
      <p>A profile is a set of files and preferences that the devices of its groups apply.</p>
      {list.refused === undefined ? (
        <List profiles={list.done} deps={deps} />
      ) : (
        <Missing>Couldn't load the profiles. {list.refused.message}</Missing>
      )}
      {isAdmin(c) ? (
        <Card title="Add profile">
          <form method="post" action={PATH} class="narrow">
            <Field
              name="name"
              label="Name"
              hint="It starts inactive and without groups."
              value={form?.text('name')}
              error={faultOf(refused, 'name')}
              required
              maxlength={100}
              autocomplete="off"
            />
            <button type="submit">Add profile</button>
          </form>
        </Card>
      ) : null}
    </>
  );
  return framed(c, deps, { title: 'Profiles', current: 'profiles', body, refused });
}

function List({ profiles, deps }: { profiles: readonly DeviceProfile[]; deps: Deps }) {
  if (profiles.length === 0)
    return (
      <Empty>
        <p>No profiles yet. Devices still get the setting that turns channels on.</p>
      </Empty>
    );
  const clock = clockOf(deps);
  const columns = [
    { label: 'Profile' },
    { label: 'Status' },
    { label: 'Applied' },
    { label: 'Groups' },
    { label: 'Changed' },
  ];
  const rows = profiles.map((profile) => [
    <a href={`${PATH}/${profile.id}`}>
      <bdi>{profile.name}</bdi>
    </a>,
    <ProfileStatus profile={profile} />,
    PROFILE_TYPE_NAMES[profile.type],
    formatProfileGroups(profile),
    profile.updatedAt === null ? '' : <When at={profile.updatedAt} clock={clock} relative />,
  ]);
  return <Table caption="Profiles" columns={columns} rows={rows} />;
}

export function ProfileStatus({ profile: { active } }: { profile: DeviceProfile }) {
  return <StatusBadge status={active ? 'ok' : 'note'}>{active ? 'Active' : 'Inactive'}</StatusBadge>;
}

export function formatProfileGroups({ groups }: Pick<DeviceProfile, 'groups'>): string {
  if (groups === 'all') return 'all';
  return groups.length === 0 ? 'none' : groups.join(', ');
}
