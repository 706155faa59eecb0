// GET /settings: shows each setting with its source, changes that need a restart, and how to change
// one.

import { counted } from '@holdfast/kit/format';
import { shortened } from '@holdfast/kit/text';
import { withTimeout } from '@holdfast/kit/timeout';
import { config } from '../../shared/health/modules/config.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { SettingView } from '../../shared/settings/load.ts';
import { attempt } from '../pages/form.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card, Facts, Search } from '../pages/parts/card.tsx';
import { Missing, StatusBadge, Warning } from '../pages/parts/notice.tsx';
import { Empty, Table } from '../pages/parts/table.tsx';
import { clockOf, When } from '../pages/parts/time.tsx';
import { ThresholdsCard } from './thresholds-card.tsx';

const SOURCES: Record<SettingView['source'], string> = {
  'command line': 'command line',
  environment: 'environment',
  'env file': '.env',
  generated: 'generated',
  stack: 'set automatically',
  default: 'default',
  unset: 'not set',
};

interface SettingsTableProps {
  section: string;
  settings: readonly SettingView[];
  /** Names of settings whose files were changed since the start. */
  changed: readonly string[];
}

/** The settings of one section with purpose, value and source; of secrets only if they are set. */
export function SettingsTable({ section, settings, changed }: SettingsTableProps) {
  const columns = [{ label: 'Setting' }, { label: 'Value' }, { label: 'Source' }];
  const rows = settings.map((setting) => [
    <Named setting={setting} />,
    <Value setting={setting} />,
    <From setting={setting} isChanged={isChanged(setting.name, changed)} />,
  ]);
  return <Table caption={section} columns={columns} rows={rows} />;
}

/** A setting that the next start would reject has the reason after its name. */
export function isChanged(name: string, changed: readonly string[]): boolean {
  return changed.some((each) => each === name || each.startsWith(`${name} (`));
}

function Named({ setting: { name, about } }: { setting: SettingView }) {
  return (
    <>
      <code>{name}</code>
      <div class="fine light">{about}</div>
    </>
  );
}

function Value({ setting: { value, secret } }: { setting: SettingView }) {
  if (secret) return <span class="fine">{value === 'set' ? 'set (hidden)' : 'not set'}</span>;
  if (value === null || value === '') return <span class="fine">not set</span>;
  if (Array.isArray(value)) return value.length === 0 ? <span class="fine">empty</span> : <>{value.join(', ')}</>;
  return <>{String(value)}</>;
}

function From({ setting: { source }, isChanged: changed }: { setting: SettingView; isChanged: boolean }) {
  return (
    <div>
      {SOURCES[source]} {changed ? <StatusBadge status="note">Restart needed</StatusBadge> : null}
    </div>
  );
}

const MAX_SEARCHED = 200;
/** A file may be on a drive that hangs. */
const WITHIN_MS = 2000;
const OWN_CHOICE = new Set(['command line', 'environment', 'env file']);

/** Adds the route of this file. */
export function settingsPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get('/settings', { access: 'admin' }, function readSettings(c) {
    return showSettings(c, deps);
  });
}

async function showSettings(c: PageContext, deps: Deps): Promise<Response> {
  const search = shortened((c.req.query('search') ?? '').trim(), MAX_SEARCHED);
  const only = c.req.query('only') === 'set' ? 'set' : 'all';
  const changes = await attempt(() =>
    withTimeout(WITHIN_MS, 'The disk with the settings', () => deps.monitored.configurationFiles.changedSinceStart()),
  );
  const changed = changes.refused === undefined ? changes.done : [];
  const settings = deps.settingsShown.filter(
    (each) => (only === 'all' || OWN_CHOICE.has(each.source)) && holds(search, each.name, each.about, each.section),
  );
  const narrowed = search !== '' || only === 'set';
  const sections = [...new Set(settings.map(({ section }) => section))];
  const body = (
    <>
      <Changed changed={changed} />
      {changes.refused === undefined ? null : (
        <Missing>Couldn’t check for changed settings: {changes.refused.message}</Missing>
      )}
      <HowTo deps={deps} />
      <Search action="/settings" label="Search settings" value={search} placeholder="Name or purpose">
        <label class="silent" for="only">
          Show
        </label>
        <select id="only" name="only">
          <option value="all">All</option>
          <option value="set" selected={only === 'set'}>
            Set by you
          </option>
        </select>
      </Search>
      {sections.map((section) => (
        <Section
          title={section}
          settings={settings.filter((each) => each.section === section)}
          changed={changed}
          open={narrowed}
        />
      ))}
      {sections.length > 0 ? null : <NoneFound search={search} only={only} />}
      {only === 'all' ? (
        <ThresholdsCard thresholds={deps.thresholds} search={search} changed={changed} open={narrowed} />
      ) : null}
    </>
  );
  return framed(c, deps, { title: 'Settings', current: 'settings', body });
}

function holds(search: string, ...texts: string[]): boolean {
  const wanted = search.toLowerCase().split(/\s+/);
  const all = texts.join(' ').toLowerCase();
  return wanted.every((word) => all.includes(word));
}

interface SectionProps {
  title: string;
  settings: SettingView[];
  changed: string[];
  open: boolean;
}

/** A section is folded unless something in it was searched for or changed. */
function Section({ title, settings, changed, open }: SectionProps) {
  const own = settings.filter(({ source }) => OWN_CHOICE.has(source)).length;
  const moved = settings.some(({ name }) => isChanged(name, changed));
  return (
    <details class="card even" open={open || moved}>
      <summary>
        {title}{' '}
        <span class="fine">
          {own === 0 ? counted(settings.length, 'setting') : `${settings.length}, ${own} set by you`}
        </span>
      </summary>
      <SettingsTable section={title} settings={settings} changed={changed} />
    </details>
  );
}

function NoneFound({ search, only }: { search: string; only: 'all' | 'set' }) {
  return (
    <Empty>
      <p>
        {search === '' ? 'No settings' : `No settings matching “${search}”`}
        {only === 'set' ? ' were set by you. The defaults apply.' : '.'}
      </p>
      <p>
        <a href="/settings">Clear filters</a>
      </p>
    </Empty>
  );
}

/** Settings that a restart would change. */
function Changed({ changed }: { changed: string[] }) {
  if (changed.length === 0) return null;
  return (
    <Warning>
      <p>
        <strong>Changed since the start. Restart to apply:</strong> {changed.join(', ')}.
      </p>
      <ul>
        {config.remedy.map((step) => (
          <li>{step}</li>
        ))}
      </ul>
    </Warning>
  );
}

function HowTo({ deps }: { deps: Deps }) {
  const inContainers = deps.monitored.wanted.container !== undefined;
  return (
    <Card title="About this stack">
      <Facts
        of={{
          Release: deps.release,
          'Running since': <When at={deps.startedAt.toISOString()} clock={clockOf(deps)} relative />,
        }}
      />
      <details class="how" id="how">
        <summary>How to change a setting</summary>
        <ol>
          <li>
            Write <code>NAME=value</code> to the file <code>.env</code> in the installation directory. The file{' '}
            <code>.env.template</code> there explains every name. Thresholds are in{' '}
            <code>monitor/config/thresholds.yml</code>.
          </li>
          <li>
            Restart:{' '}
            {inContainers ? (
              <code>./scripts/start.sh</code>
            ) : (
              <>
                <code>./scripts/stop.sh --data DIR</code>, then{' '}
                <code>./scripts/start.sh --embedded --data DIR --detach</code>
              </>
            )}
            . Devices are disconnected meanwhile and reconnect by themselves.
          </li>
          <li>Check this page again. An invalid value stops the start and is named with the reason.</li>
        </ol>
        <p>
          Every setting here needs that restart. Only the <a href="/database/retention">retention policy</a> can also be
          changed while the stack runs.
        </p>
      </details>
    </Card>
  );
}
