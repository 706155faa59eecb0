// The apps and plugins that ATAK installs from the server: a section of /plugins, POST
// /plugins/packages, and POST /plugins/packages/delete.

import type { AppError } from '@holdfast/kit/app-error';
import { formatBytes } from '@holdfast/kit/format';
import { addPackage, deletePackage } from '../../shared/core/contents/change.ts';
import type { DevicePackage } from '../../shared/core/contents/port.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actingIn } from '../../shared/http/sign-in.ts';
import { type Attempt, attempt, formOf } from '../pages/form.ts';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card } from '../pages/parts/card.tsx';
import { FileField } from '../pages/parts/field.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';

const PATH = '/plugins/packages';

/** Adds the routes of this file. `show` is the page that they belong to. */
export function devicePackagePages(
  app: App,
  deps: Deps,
  show: (c: PageContext, refused: AppError) => Promise<Response>,
): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.upload(PATH, { access: 'admin' }, async function add(c, upload) {
    const { refused } = await attempt(() => addPackage(actingIn(c, deps), upload), 'too_large');
    return refused === undefined ? goTo(c, '/plugins?done=added') : show(c, refused);
  });

  pages.post(`${PATH}/delete`, { access: 'admin' }, async function remove(c) {
    const hash = (await formOf(c)).exact('hash');
    const { refused } = await attempt(() => deletePackage(actingIn(c, deps), hash), 'not_found');
    return refused === undefined ? goTo(c, '/plugins?done=deleted') : show(c, refused);
  });
}

interface DevicePackagesProps {
  packages: Attempt<DevicePackage[] | undefined>;
  /** Of the update server. */
  address: string;
  mayChange: boolean;
}

/** Nothing when the core serves none. */
export function DevicePackages({ packages, address, mayChange }: DevicePackagesProps) {
  if (packages.refused !== undefined)
    return <Missing>Couldn't list the apps and plugins for ATAK. {packages.refused.message}</Missing>;
  if (packages.done === undefined) return null;
  return (
    <Card title="Apps and plugins for ATAK" id="packages">
      <p>
        ATAK installs these from <code>{address}</code>: Settings, Tool Preferences, TAK Package Management, Update
        Server.
      </p>
      <List packages={packages.done} mayChange={mayChange} />
      {mayChange ? (
        <form method="post" action={PATH} enctype="multipart/form-data" class="narrow">
          <FileField
            name="file"
            label="APK file"
            hint="At most 400 MB. Name and version are read from it. A newer one for the same ATAK replaces the older one."
            accept=".apk"
            required
          />
          <button type="submit">Upload APK</button>
        </form>
      ) : null}
    </Card>
  );
}

function List({ packages, mayChange }: { packages: readonly DevicePackage[]; mayChange: boolean }) {
  if (packages.length === 0)
    return (
      <Empty>
        <p>No apps or plugins yet.</p>
      </Empty>
    );
  const columns = [
    { label: 'Name' },
    { label: 'Version' },
    { label: 'Made for' },
    { label: 'Size', numeric: true },
    ...(mayChange ? [{ label: 'Actions', silent: true }] : []),
  ];
  const rows = packages.map(({ hash, name, packageName, version, pluginApi, bytes }) => [
    <>
      <bdi>{name}</bdi>
      <br /> <span class="fine uid">{packageName}</span>
    </>,
    version,
    pluginApi ?? 'Android',
    formatBytes(bytes),
    ...(mayChange
      ? [
          <form method="post" action={`${PATH}/delete`}>
            <input type="hidden" name="hash" value={hash} />
            <button type="submit" class="quiet">
              Delete <span class="silent">{name}</span>
            </button>
          </form>,
        ]
      : []),
  ]);
  return <Table caption="Apps and plugins for ATAK" columns={columns} rows={rows} />;
}
