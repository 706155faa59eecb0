// GET, POST /plugins: lists the plugins of the core, and starts, stops, enables or disables them.

import { AppError } from '@holdfast/kit/app-error';
import { changePlugin, listPlugins, PLUGIN_CHANGES, type PluginChange } from '../../shared/core/change-plugin.ts';
import type { CorePlugin } from '../../shared/core/port.ts';
import { listFeeds } from '../../shared/feeds/change.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actorOf } from '../../shared/http/sign-in.ts';
import { channelNames } from '../../shared/people/groups.ts';
import { type Attempt, attempt, formOf } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Confirm } from '../pages/parts/card.tsx';
import { Missing, Notice, Problem, StatusBadge } from '../pages/parts/notice.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';
import { clockOf } from '../pages/parts/time.tsx';
import { DevicePackages, devicePackagePages } from './device-packages.tsx';
import { FEEDS_DONE, feedPages, FeedsCard, type RefusedFeed } from './feeds.tsx';

const PATH = '/plugins';

const DONE = {
  start: 'Plugin started.',
  stop: 'Plugin stopped. It stays stopped until an administrator starts it. If it is enabled, it also starts with the core.',
  enable: 'Plugin enabled. It now starts with the core.',
  disable: 'Plugin disabled. It no longer starts with the core.',
  added: 'Uploaded. Devices see it the next time that they look for updates.',
  deleted: 'Deleted. Devices that have installed it keep it.',
  ...FEEDS_DONE,
};

/** Adds the routes of this file. */
export function pluginsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'viewer' }, function listAll(c) {
    return showPlugins(c, deps);
  });

  devicePackagePages(app, deps, (c, refused) => showPlugins(c, deps, refused));
  feedPages(app, deps, (c, retry) => showPlugins(c, deps, retry.refused, retry));

  pages.post(PATH, { access: 'admin' }, async function change(c) {
    const form = await formOf(c);
    const word = form.text('change');
    if (!isChange(word)) throw new AppError('invalid', `change: must be one of: ${CHANGES.join(', ')}`);
    const name = form.exact('name');
    const result = await attempt(() => changePlugin({ deps, actor: actorOf(c) }, { name, change: word }), 'not_found');
    const refused = result.refused ?? unchanged(result.done, word);
    return refused === undefined ? goTo(c, `${PATH}?done=${word}`) : showPlugins(c, deps, refused);
  });
}

const CHANGES = Object.keys(PLUGIN_CHANGES);

function isChange(word: string): word is PluginChange {
  return Object.hasOwn(PLUGIN_CHANGES, word);
}

/**
 * The error when the core accepted a change but the plugin did not follow, for example because it
 * crashed at its start.
 */
function unchanged(plugin: CorePlugin, change: PluginChange): AppError | undefined {
  if (Object.entries(PLUGIN_CHANGES[change]).every(([what, wanted]) => plugin[what as 'enabled'] === wanted))
    return undefined;
  const reason = plugin.error === null ? 'It gave no reason. Check the core log.' : `Its error: ${plugin.error}`;
  return new AppError('conflict', `The core did not ${change} ${plugin.name}. ${reason}`);
}

async function showPlugins(
  c: PageContext,
  deps: Deps,
  refused?: AppError,
  retry: Partial<RefusedFeed> = {},
): Promise<Response> {
  const mayChange = isAdmin(c);
  const [list, packages, feeds, channels] = await Promise.all([
    attempt(() => listPlugins(deps)),
    attempt(() => deps.coreContents.packages()),
    attempt(() => listFeeds(deps)),
    mayChange ? attempt(() => channelNames(deps)) : { done: [] },
  ]);
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      <List list={list} mayChange={mayChange} />
      <FeedsCard feeds={feeds} channels={channels} retry={retry} clock={clockOf(deps)} mayChange={mayChange} />
      <DevicePackages packages={packages} address={updateServer(deps)} mayChange={mayChange} />
    </>
  );
  return framed(c, deps, { title: 'Plugins', current: 'plugins', body, refused });
}

/** As ATAK proposes it. */
function updateServer({ place }: Deps): string {
  return `https://${place.name}:8443/update`;
}

function List({ list, mayChange }: { list: Attempt<CorePlugin[]>; mayChange: boolean }) {
  if (list.refused !== undefined)
    return <Missing>Couldn't list the plugins. {list.refused.message} Devices are not affected.</Missing>;
  if (list.done.length === 0)
    return (
      <Empty>
        <p>No plugins yet.</p>
        <p>
          In a TAK Server, put the plugin's .jar file into the core's lib directory and restart the core. The light core
          runs no such plugins: use feeds below, or flows.
        </p>
      </Empty>
    );
  const columns = [
    { label: 'Plugin' },
    { label: 'Status' },
    { label: 'Starts with core' },
    ...(mayChange ? [{ label: 'Actions', silent: true }] : []),
  ];
  const rows = list.done.map((plugin, at) => [
    <Name plugin={plugin} />,
    <State plugin={plugin} />,
    plugin.enabled ? 'Yes' : 'No',
    ...(mayChange ? [<Changes plugin={plugin} at={at} />] : []),
  ]);
  return <Table caption="Plugins of the core" columns={columns} rows={rows} />;
}

function Name({ plugin: { name, version, description } }: { plugin: CorePlugin }) {
  return (
    <>
      <bdi>{name}</bdi> {version === '' ? null : <span class="fine light">{version}</span>}
      {description === '' ? null : <div class="fine light">{description}</div>}
    </>
  );
}

function State({ plugin: { started, enabled, error } }: { plugin: CorePlugin }) {
  return (
    <div>
      {started ? (
        <StatusBadge status="ok">Running</StatusBadge>
      ) : (
        <StatusBadge status={error === null && !enabled ? 'note' : 'warning'}>Stopped</StatusBadge>
      )}
      {error === null ? null : <p class="fault">{error}</p>}
    </div>
  );
}

function Changes({ plugin: { name, started, enabled }, at }: { plugin: CorePlugin; at: number }) {
  return (
    <div class="row">
      {started ? (
        <Confirm id={`stop-${at}`} label="Stop…" of={name} action={PATH} button={`Stop ${name}`}>
          <p>{name} stops immediately for everyone. Devices stay connected.</p>
          <ChangeFields name={name} change="stop" />
        </Confirm>
      ) : (
        <form method="post" action={PATH}>
          <ChangeFields name={name} change="start" />
          <button type="submit" class="quiet">
            Start <span class="silent">{name}</span>
          </button>
        </form>
      )}
      {enabled ? (
        <Confirm id={`disable-${at}`} label="Disable…" of={name} action={PATH} button={`Disable ${name}`}>
          <p>{name} no longer starts with the core. If it is running, it keeps running until you stop it.</p>
          <ChangeFields name={name} change="disable" />
        </Confirm>
      ) : (
        <form method="post" action={PATH}>
          <ChangeFields name={name} change="enable" />
          <button type="submit" class="quiet">
            Enable <span class="silent">{name}</span>
          </button>
        </form>
      )}
    </div>
  );
}

function ChangeFields({ name, change }: { name: string; change: PluginChange }) {
  return (
    <>
      <input type="hidden" name="name" value={name} />
      <input type="hidden" name="change" value={change} />
    </>
  );
}
