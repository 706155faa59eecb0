// Renders the retention policy editor: days for each type and the run schedule. It leads only to
// the preview.

import type { AppError } from '@holdfast/kit/app-error';
import { maxDays, RETAINED, type Retained } from '@holdfast/kit/retention';
import { formatSchedule, WEEKDAY_NAMES, WEEKDAYS } from '../../../shared/retention/format-schedule.ts';
import type { RetentionState } from '../../../shared/retention/state.ts';
import { faultOf } from '../../pages/form.ts';
import { Card } from '../../pages/parts/card.tsx';
import { Field, Select } from '../../pages/parts/field.tsx';
import { type Draft, formatKept, TYPE_WORDS, variableOf } from './draft.ts';

interface EditorProps {
  state: RetentionState;
  draft: Draft;
  refused?: AppError | undefined;
  title: string;
}

export function RetentionEditor({ state, draft, refused, title }: EditorProps) {
  return (
    <Card title={title} id="editor">
      <form method="get" action="/database/retention/preview">
        <p class="fine">
          The next run permanently deletes data older than these days. An empty field keeps everything.
        </p>
        <ul class="kept">
          {RETAINED.map((type) => (
            <Days type={type} state={state} text={draft.days[type]} error={faultOf(refused, type)} />
          ))}
        </ul>
        <Schedule state={state} draft={draft} refused={refused} />
        <button type="submit">Preview</button>
        <p class="fine after">Nothing is saved yet. The preview shows what would be deleted.</p>
      </form>
    </Card>
  );
}

interface DaysProps {
  type: Retained;
  state: RetentionState;
  text: string;
  error: string | undefined;
}

function Days({ type, state, text, error }: DaysProps) {
  const { name, what } = TYPE_WORDS[type];
  return (
    <li>
      <div>
        <label for={type}>{name}</label>
        <p class="fine" id={`${type}-what`}>
          {what}
        </p>
        {type === 'missionpackages' && state.unit === 'seconds' ? (
          <p class="fine">A TAK Server release deletes these by the days of files and ignores this field.</p>
        ) : null}
        {error === undefined ? null : (
          <p class="fault" id={`${type}-fault`}>
            {error}
          </p>
        )}
      </div>
      {state.source[type] === 'env' ? (
        <Locked id={type} variable={variableOf(type) ?? ''} value={formatKept(state.policy[type])} />
      ) : (
        <span class="days">
          <input
            id={type}
            name={type}
            type="text"
            inputmode="numeric"
            maxlength={9}
            value={text}
            placeholder="forever"
            autocomplete="off"
            aria-describedby={`${type}-what${error === undefined ? '' : ` ${type}-fault`}`}
            aria-invalid={error === undefined ? undefined : 'true'}
            title={`Days from 1 to ${maxDays(state.unit ?? 'days')}; empty keeps forever`}
          />
          <span>days</span>
        </span>
      )}
    </li>
  );
}

function Locked({ id, variable, value }: { id: string; variable: string; value: string }) {
  return (
    <p class="locked" id={id}>
      <strong>{value}</strong>
      <span class="fine">
        Set by <code>{variable}</code>. Change it in <code>.env</code> and restart.
      </span>
    </p>
  );
}

function Schedule({ state, draft, refused }: Pick<EditorProps, 'state' | 'draft' | 'refused'>) {
  const now = scheduleNow(state);
  if (state.source.cron === 'env')
    return (
      <div class="schedule">
        <h3>Run schedule</h3>
        <Locked id="schedule" variable="RETENTION_CRON" value={now} />
      </div>
    );
  const isOwn = draft.schedule === 'own';
  return (
    <fieldset class="schedule">
      <legend>Run schedule</legend>
      <div class="row">
        <Select
          name="schedule"
          label="Frequency"
          value={draft.schedule}
          error={faultOf(refused, 'schedule')}
          choices={[
            { value: 'keep', label: `Keep current: ${now}` },
            { value: 'daily', label: 'Every day' },
            { value: 'weekly', label: 'Once a week' },
            { value: 'never', label: 'Never (delete nothing)' },
            { value: 'own', label: 'Custom expression' },
          ]}
        />
        <Select
          name="weekday"
          label="Weekday (if weekly)"
          value={draft.weekday}
          choices={WEEKDAYS.map((value) => ({ value, label: WEEKDAY_NAMES[value] }))}
        />
        <Field
          name="time"
          label={`Time (${state.time_zone})`}
          value={draft.time}
          error={faultOf(refused, 'time')}
          maxlength={5}
          placeholder="03:00"
        />
      </div>
      <details open={isOwn}>
        <summary>Custom Quartz expression</summary>
        <Field
          name="cron"
          label="Expression"
          hint={
            <>
              Seconds, minutes, hours, day, month, weekday: <code>0 0 3 ? * MON-FRI</code>.
            </>
          }
          value={draft.cron}
          error={faultOf(refused, 'cron')}
          maxlength={200}
          plain
        />
      </details>
    </fieldset>
  );
}

/** `every day at 03:00`, or the core's own expression. */
export function scheduleNow({ cron, dialect }: Pick<RetentionState, 'cron' | 'dialect'>): string {
  return formatSchedule(cron, dialect ?? 'quartz') ?? cron;
}
