// Lists backups with their proofs, and what can be done with each.

import { counted, formatBytes, formatSeconds, grouped } from '@holdfast/kit/format';
import { formatLevel, LEVEL_WORDS } from '../../../shared/backups/rules.ts';
import type { BackupsView } from '../../../shared/backups/view.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { Confirm } from '../../pages/parts/card.tsx';
import { StatusBadge } from '../../pages/parts/notice.tsx';
import { Empty, Table } from '../../pages/parts/table.tsx';
import { type Clock, When } from '../../pages/parts/time.tsx';

type ListedBackup = BackupsView['backups'][number];

interface ListProps {
  backups: readonly ListedBackup[];
  mayChange: boolean;
  isBusy: boolean;
  clock: Clock;
}

export function BackupList({ backups, mayChange, isBusy, clock }: ListProps) {
  if (backups.length === 0) return <Empty>No backups yet.{mayChange ? ' Make the first one with Run now.' : ''}</Empty>;
  return (
    <Table
      caption="Backups, newest first"
      columns={[
        { label: 'Backup' },
        { label: 'Level' },
        { label: 'Size', numeric: true },
        { label: 'Requested by' },
        ...(mayChange ? [{ label: 'Actions', silent: true }] : []),
      ]}
      rows={backups.map((backup) => [
        <Made backup={backup} clock={clock} />,
        <Level backup={backup} clock={clock} />,
        <Size backup={backup} />,
        <span class="whole">{backup.requested_by}</span>,
        ...(mayChange ? [<Actions backup={backup} isBusy={isBusy} />] : []),
      ])}
    />
  );
}

function Made({ backup: { name, created_at: at, permanent, history }, clock }: { backup: ListedBackup; clock: Clock }) {
  return (
    <>
      <When at={at} clock={clock} relative />
      {permanent ? (
        <div>
          <StatusBadge status="ok">Permanent</StatusBadge>
        </div>
      ) : null}
      <div class="fine light">
        {name}
        {history ? '' : ', without history'}
      </div>
    </>
  );
}

function statusOf({ proof, proven }: ListedBackup): Status {
  if (proven) return 'ok';
  return proof === null ? 'note' : 'warning';
}

function Level({ backup, clock }: { backup: ListedBackup; clock: Clock }) {
  const { proof, name } = backup;
  return (
    <div>
      <StatusBadge status={statusOf(backup)}>{formatLevel(backup)}</StatusBadge>
      {proof === null ? (
        <p class="fine">It was never restored, so it is unknown if it can be.</p>
      ) : (
        <>
          <p class="fine">{proof.level === null ? 'The proof reached no level.' : LEVEL_WORDS[proof.level].means}</p>
          {proof.error === null ? null : <p class="fault">{proof.error}</p>}
          {proof.limit === null ? null : <p class="fine">It goes no further here: {proof.limit.reason}</p>}
          <details id={`checks-${name}`}>
            <summary>{counted(proof.checks.length, 'check')}</summary>
            <p class="fine">
              <When at={proof.at} clock={clock} relative />, in {formatSeconds(proof.seconds)}
            </p>
            <ul>
              {proof.checks.map(({ name: check, ok, detail }) => (
                <li class={ok ? undefined : 'fault'}>
                  {ok ? 'OK' : 'Failed'}: {check}
                  {detail === '' ? '' : `, ${detail}`}
                </li>
              ))}
            </ul>
          </details>
        </>
      )}
    </div>
  );
}

function Size({ backup: { bytes, rows, seconds } }: { backup: ListedBackup }) {
  return (
    <div>
      {formatBytes(bytes)}
      <div class="fine light">
        {grouped(rows)} rows, {formatSeconds(seconds)}
      </div>
    </div>
  );
}

function Actions({ backup: { name, permanent }, isBusy }: { backup: ListedBackup; isBusy: boolean }) {
  const path = `/backups/${encodeURIComponent(name)}`;
  return (
    <div class="row">
      <a class="button" href={`/api${path}/archive`} download={name}>
        Download <span class="silent">{name}</span>
      </a>
      {isBusy ? null : (
        <form method="post" action={`${path}/proof`}>
          <button type="submit" class="quiet">
            Prove now <span class="silent">{name}</span>
          </button>
        </form>
      )}
      {permanent ? (
        <Confirm
          id={`release-${name}`}
          label="Unmark…"
          of={name}
          action={`${path}/permanent`}
          button="Unmark as permanent"
        >
          <p>The keep rules may delete this backup at the next run. A deleted backup can’t be recovered.</p>
          <input type="hidden" name="permanent" value="false" />
        </Confirm>
      ) : (
        <form method="post" action={`${path}/permanent`}>
          <input type="hidden" name="permanent" value="true" />
          <button type="submit" class="quiet">
            Mark permanent <span class="silent">{name}</span>
          </button>
        </form>
      )}
    </div>
  );
}
