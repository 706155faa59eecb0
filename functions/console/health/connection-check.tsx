// Shows the connection check stage by stage: where it stops and how long each stage took.

import { rounded } from '@holdfast/kit/format';
import type { ProbeStage, StageResult } from '../../../shared/devices/connections/probe.ts';
import type { Measurement, ModuleState } from '../../../shared/health/port.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { Icon } from '../../pages/parts/notice.tsx';
import { type Clock, Distance } from '../../pages/parts/time.tsx';

const STAGES: readonly (readonly [stage: ProbeStage, label: string])[] = [
  ['account', 'Account found'],
  ['bind', 'Signs in'],
  ['groups', 'Has its channel'],
  ['certificate', 'Has a certificate'],
  ['connect', 'Connects (mTLS)'],
  ['send', 'Sends a CoT event'],
  ['receive', 'Event received'],
  ['store', 'Event stored'],
];

interface ConnectionCheckProps {
  state: ModuleState | undefined;
  clock: Clock;
}

export function ConnectionCheck({ state, clock }: ConnectionCheckProps) {
  const measurement = state?.measurement ?? null;
  const stages = (measurement?.data['stages'] ?? []) as StageResult[];
  const { sentence, status } = verdictOf(measurement, stages);
  return (
    <section class={`card way ${status}`}>
      <div class="head">
        <h2>{sentence}</h2>
        {measurement === null ? null : (
          <a href="/health/probe" class="fine">
            checked <Distance at={measurement.updated_at} clock={clock} />
          </a>
        )}
      </div>
      {stages.length === 0 ? (
        <p class="fine">{measurement?.message ?? 'The first check runs within a few minutes.'}</p>
      ) : (
        <Stages stages={stages} />
      )}
    </section>
  );
}

function verdictOf(
  measurement: Measurement | null,
  stages: readonly StageResult[],
): { sentence: string; status: Status } {
  if (measurement === null) return { sentence: 'Connection check pending', status: 'note' };
  const failed = stages.find(({ ok }) => !ok);
  if (stages.length === 0) return { sentence: 'Connection check failed to run', status: 'critical' };
  if (failed === undefined) return { sentence: 'Devices can connect', status: 'ok' };
  const label = STAGES.find(([stage]) => stage === failed.stage)?.[1] ?? failed.stage;
  return { sentence: `Devices can't connect: the check stops at “${label}”`, status: measurement.status };
}

function Stages({ stages }: { stages: readonly StageResult[] }) {
  const shown = STAGES.map(([stage, label]) => ({ label, result: stages.find((each) => each.stage === stage) }));
  const last = stages.find(({ stage }) => stage === 'end');
  if (last !== undefined && !last.ok) shown.push({ label: 'Disconnects', result: last });
  return (
    <ol class="stages">
      {shown.map(({ label, result }) => (
        <li class={result === undefined ? 'untried' : result.ok ? 'ok' : 'critical'}>
          {result === undefined ? null : <Icon name={result.ok ? 'ok' : 'critical'} />}
          <span>{label}</span>
          <small>
            {result === undefined ? 'not tried' : `${result.ok ? '' : 'failed, '}${took(result.milliseconds)}`}
          </small>
          {typeof result?.problem === 'string' ? <p>{result.problem}</p> : null}
        </li>
      ))}
    </ol>
  );
}

function took(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${rounded(milliseconds / 1000, 1)} s`;
}
