// GET, POST /plugins: the plugins of the core, whether each runs and is started with it. While their process is down a
// sentence says so in the place of the list.

import { AppError } from '@holdfast/kit/app-error';
import { changePlugin, listPlugins, PLUGIN_CHANGES, type PluginChange } from '../../shared/core/change-plugin.ts';
import type { CorePlugin } from '../../shared/core/port.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actorOf } from '../../shared/http/sign-in.ts';
import { type Attempt, attempt, formOf } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { isAdmin, type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Confirm } from '../pages/parts/card.tsx';
import { Missing, Notice, Problem, StatusBadge } from '../pages/parts/notice.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';

const PATH = '/plugins';

const DONE = {
  start: 'The plugin runs.',
  stop: 'The plugin is stopped. It stays out until somebody starts it, or until the core is started again if it is started with the core.',
  enable: 'The plugin is started together with the core from now on.',
  disable: 'The plugin is not started together with the core any more.',
};

/** Adds the routes of this file. */
export function pluginsPage(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.get(PATH, { access: 'viewer' }, function listAll(c) {
    return showPlugins(c, deps);
  });

  pages.post(PATH, { access: 'admin' }, async function change(c) {
    const form = await formOf(c);
    const word = form.text('change');
    if (!isChange(word)) throw new AppError('invalid', `change: must be one of: ${CHANGES.join(', ')}`);
    const name = form.exact('name');
    const tried = await attempt(() => changePlugin({ deps, actor: actorOf(c) }, { name, change: word }), 'not_found');
    const refused = tried.refused ?? notSo(tried.done, word);
    return refused === undefined ? goTo(c, `${PATH}?done=${word}`) : showPlugins(c, deps, refused);
  });
}

const CHANGES = Object.keys(PLUGIN_CHANGES);

function isChange(word: string): word is PluginChange {
  return Object.hasOwn(PLUGIN_CHANGES, word);
}

/** A plugin may be told to start and fall over. */
function notSo(plugin: CorePlugin, change: PluginChange): AppError | undefined {
  if (Object.entries(PLUGIN_CHANGES[change]).every(([what, wanted]) => plugin[what as 'enabled'] === wanted))
    return undefined;
  const why = plugin.error === null ? 'It gives no reason; the log of the core may.' : `It says: ${plugin.error}`;
  return new AppError('conflict', `The core was told to ${change} ${plugin.name}, and it did not. ${why}`);
}

async function showPlugins(c: PageContext, deps: Deps, refused?: AppError): Promise<Response> {
  const list = await attempt(() => listPlugins(deps));
  const mayChange = isAdmin(c);
  const body = (
    <>
      <Notice c={c} sentences={DONE} />
      <Problem error={refused} />
      <List list={list} mayChange={mayChange} />
    </>
  );
  return framed(c, deps, { title: 'Plugins', current: 'plugins', body, refused });
}

function List({ list, mayChange }: { list: Attempt<CorePlugin[]>; mayChange: boolean }) {
  if (list.refused !== undefined)
    return <Missing>The plugins cannot be listed now: {list.refused.message} Devices are not touched by that.</Missing>;
  if (list.done.length === 0)
    return (
      <Empty>
        <p>The core has no plugins.</p>
        <p>
          A plugin is a .jar file in the directory lib of the core; it appears here once the core was started again.
        </p>
      </Empty>
    );
  const columns = [
    { label: 'Plugin' },
    { label: 'State' },
    { label: 'With the core' },
    ...(mayChange ? [{ label: 'Change', silent: true }] : []),
  ];
  const rows = list.done.map((plugin, at) => [
    <Named plugin={plugin} />,
    <State plugin={plugin} />,
    plugin.enabled ? 'is started' : 'is not started',
    ...(mayChange ? [<Changes plugin={plugin} at={at} />] : []),
  ]);
  return <Table caption="Plugins of the core" columns={columns} rows={rows} />;
}

function Named({ plugin: { name, version, description } }: { plugin: CorePlugin }) {
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
          <p>What {name} does ends at once, for everybody. Devices stay connected.</p>
          <Report name={name} change="stop" />
        </Confirm>
      ) : (
        <form method="post" action={PATH}>
          <Report name={name} change="start" />
          <button type="submit" class="quiet">
            Start <span class="silent">{name}</span>
          </button>
        </form>
      )}
      {enabled ? (
        <Confirm id={`disable-${at}`} label="Disable…" of={name} action={PATH} button={`Disable ${name}`}>
          <p>{name} is not started any more when the core is. What runs now runs on until it is stopped.</p>
          <Report name={name} change="disable" />
        </Confirm>
      ) : (
        <form method="post" action={PATH}>
          <Report name={name} change="enable" />
          <button type="submit" class="quiet">
            Enable <span class="silent">{name}</span>
          </button>
        </form>
      )}
    </div>
  );
}

function Report({ name, change }: { name: string; change: PluginChange }) {
  return (
    <>
      <input type="hidden" name="name" value={name} />
      <input type="hidden" name="change" value={change} />
    </>
  );
}
