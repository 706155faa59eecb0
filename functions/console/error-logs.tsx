// The logs that devices send of their failures: a section of /devices, POST /devices/logs/:id to
// download one, and POST /devices/logs/:id/delete.

import { AppError } from '@holdfast/kit/app-error';
import { formatBytes } from '@holdfast/kit/format';
import { bytesOfBase64 } from '@holdfast/kit/text';
import { deleteErrorLog, readErrorLog } from '../../shared/core/contents/change.ts';
import type { ErrorLog } from '../../shared/core/contents/port.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { goTo } from '../../shared/http/page.tsx';
import { actingIn } from '../../shared/http/sign-in.ts';
import { type Attempt, attempt } from '../pages/form.ts';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Card } from '../pages/parts/card.tsx';
import { Missing } from '../pages/parts/notice.tsx';
import { Table } from '../pages/parts/table.tsx';
import { type Clock, Distance } from '../pages/parts/time.tsx';

const PATH = '/devices/logs';

/** Adds the routes of this file. */
export function errorLogPages(app: App, deps: Deps): void {
  const pages = pagesOf(app, deps, ['console']);

  pages.post(`${PATH}/:id`, { access: 'admin' }, async function download(c) {
    const { filename, base64 } = await readErrorLog(actingIn(c, deps), idOf(c));
    return c.body(bytesOfBase64(base64), 200, {
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': `attachment; filename="${filename}"`,
      'X-Content-Type-Options': 'nosniff',
      'Cache-Control': 'no-store',
    });
  });

  pages.post(`${PATH}/:id/delete`, { access: 'admin' }, async function remove(c) {
    const { refused } = await attempt(() => deleteErrorLog(actingIn(c, deps), idOf(c)), 'not_found');
    if (refused === undefined || refused.code === 'not_found') return goTo(c, '/devices?done=log-deleted');
    throw refused;
  });
}

function idOf(c: PageContext): number {
  const text = c.req.param('id') ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new AppError('not_found', 'There is no log at this address.');
}

interface ErrorLogsProps {
  logs: Attempt<ErrorLog[] | undefined>;
  clock: Clock;
  isAdmin: boolean;
}

/** By device. Nothing when there are none, or the core keeps none. */
export function ErrorLogs({ logs, clock, isAdmin }: ErrorLogsProps) {
  if (logs.refused !== undefined) return <Missing>Couldn't load the error logs. {logs.refused.message}</Missing>;
  const all = logs.done ?? [];
  if (all.length === 0) return null;
  const byDevice = all.toSorted(
    (one, other) => one.uid.localeCompare(other.uid) || other.at.localeCompare(one.at) || other.id - one.id,
  );
  const columns = [
    { label: 'Device' },
    { label: 'Person' },
    { label: 'App' },
    { label: 'Sent' },
    { label: 'Size', numeric: true },
    ...(isAdmin ? [{ label: 'Actions', silent: true }] : []),
  ];
  const rows = byDevice.map((log) => [
    <>
      <bdi>{log.callsign === '' ? 'No callsign' : log.callsign}</bdi>
      <br /> <span class="fine uid">{log.uid}</span>
    </>,
    <bdi>{log.username}</bdi>,
    `${log.platform} ${log.version}`,
    <Distance at={log.at} clock={clock} />,
    formatBytes(log.bytes),
    ...(isAdmin ? [<Actions log={log} />] : []),
  ]);
  return (
    <Card title="Error logs" id="error-logs">
      <p class="fine">Devices send these when their app fails. The newest 20 of each person are kept.</p>
      <Table caption="Error logs by device" columns={columns} rows={rows} />
    </Card>
  );
}

function Actions({ log: { id, callsign, uid } }: { log: ErrorLog }) {
  const name = callsign === '' ? uid : callsign;
  return (
    <div class="row">
      <form method="post" action={`${PATH}/${id}`}>
        <button type="submit">
          Download <span class="silent">log of {name}</span>
        </button>
      </form>
      <form method="post" action={`${PATH}/${id}/delete`}>
        <button type="submit" class="quiet">
          Delete <span class="silent">log of {name}</span>
        </button>
      </form>
    </div>
  );
}
