// Form fields with label, hint and error, filters, and a range of days.

import type { Child } from 'hono/jsx';
import { beginOfDay, endOfDay } from '@holdfast/kit/time';
import type { PageContext } from '../page-routes.ts';

interface Common {
  name: string;
  label: Child;
  hint?: Child;
  /** Why the submitted value was refused. */
  error?: string | undefined;
  required?: boolean;
  /** Default: the name. */
  id?: string;
}

interface FieldProps extends Common {
  type?: 'text' | 'search' | 'email' | 'number' | 'password' | 'date' | 'datetime-local';
  value?: string | undefined;
  autocomplete?: string;
  pattern?: string;
  title?: string;
  min?: number | string;
  max?: number | string;
  maxlength?: number;
  inputmode?: 'numeric' | 'email' | 'text';
  placeholder?: string;
  autofocus?: boolean;
  /** Turns off automatic capitals and spelling corrections. */
  plain?: boolean;
}

export function Field({ label, hint, error, id, plain = false, value = '', type = 'text', ...rest }: FieldProps) {
  const key = id ?? rest.name;
  const typing = plain ? ({ autocapitalize: 'none', spellcheck: false } as const) : {};
  return (
    <Labelled id={key} label={label} hint={hint} error={error}>
      <input id={key} type={type} value={value} {...typing} {...rest} {...described(key, hint, error)} />
    </Labelled>
  );
}

interface TextAreaProps extends Common {
  value: string;
  rows: number;
}

export function TextArea({ label, hint, error, id, value, ...rest }: TextAreaProps) {
  const key = id ?? rest.name;
  return (
    <Labelled id={key} label={label} hint={hint} error={error}>
      <textarea id={key} autocapitalize="none" spellcheck={false} {...rest} {...described(key, hint, error)}>
        {value}
      </textarea>
    </Labelled>
  );
}

/** Of a form with `enctype="multipart/form-data"`. */
export function FileField({ label, hint, error, id, ...rest }: Common & { accept?: string }) {
  const key = id ?? rest.name;
  return (
    <Labelled id={key} label={label} hint={hint} error={error}>
      <input id={key} type="file" {...rest} {...described(key, hint, error)} />
    </Labelled>
  );
}

interface Choice {
  value: string;
  label: string;
}

interface SelectProps extends Common {
  value?: string | undefined;
  choices: readonly Choice[];
}

export function Select({ label, hint, error, id, name, value, choices, required = false }: SelectProps) {
  const key = id ?? name;
  return (
    <Labelled id={key} label={label} hint={hint} error={error}>
      <select id={key} name={name} required={required} {...described(key, hint, error)}>
        {choices.map((choice) => (
          <option value={choice.value} selected={choice.value === value}>
            {choice.label}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

interface ChecksProps {
  legend: Child;
  name: string;
  choices: readonly Choice[];
  chosen: readonly string[];
  type?: 'checkbox' | 'radio';
  hint?: Child;
  error?: string | undefined;
}

/** Checkboxes or radio buttons. */
export function Checks({ legend, name, choices, chosen, type = 'checkbox', hint, error }: ChecksProps) {
  return (
    <fieldset class="checks" {...described(name, hint, error)}>
      <legend>{legend}</legend>
      <HintAndError id={name} hint={hint} error={error} />
      {choices.map(({ value, label }) => (
        <label>
          <input type={type} name={name} value={value} checked={chosen.includes(value)} /> <span>{label}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface LabelledProps {
  id: string;
  label: Child;
  hint?: Child;
  error?: string | undefined;
  children: Child;
}

function Labelled({ id, label, hint, error, children }: LabelledProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <HintAndError id={id} hint={hint} error={error} />
      {children}
    </div>
  );
}

function HintAndError({ id, hint, error }: { id: string; hint?: Child; error?: string | undefined }) {
  return (
    <>
      {hint === undefined ? null : (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error === undefined ? null : (
        <p class="fault" id={`${id}-fault`}>
          {error}
        </p>
      )}
    </>
  );
}

function described(id: string, hint: Child | undefined, error: string | undefined): Record<string, string> {
  const ids = [hint === undefined ? '' : `${id}-hint`, error === undefined ? '' : `${id}-fault`].filter(
    (each) => each !== '',
  );
  return {
    ...(ids.length === 0 ? {} : { 'aria-describedby': ids.join(' ') }),
    ...(error === undefined ? {} : { 'aria-invalid': 'true' }),
  };
}

interface FiltersProps {
  /** The path of the page, without a query. */
  action: string;
  /** The active filters, as text. */
  set: readonly string[];
  /** The address of the list as CSV. */
  csv?: string;
  /** Expands the fields, for example when one of them is invalid. */
  open?: boolean;
  /** The fields. */
  children: Child;
}

/** A collapsed filter form for the current page. Its button names the active filters. */
export function Filters({ action, set, csv, open = false, children }: FiltersProps) {
  return (
    <div class="filters">
      <details open={open}>
        <summary class="button">{set.length === 0 ? 'Filter' : `Filter: ${set.join(', ')}`}</summary>
        <form method="get" action={action}>
          <div class="fields">{children}</div>
          <p class="row">
            <button type="submit">Apply filters</button>
          </p>
        </form>
      </details>
      {set.length === 0 ? null : (
        <a class="button" href={action}>
          Clear filters
        </a>
      )}
      {csv === undefined ? null : (
        <a class="button" href={csv} download>
          Download CSV
        </a>
      )}
    </div>
  );
}

/** A range of days in the stack's time zone, including the last day. */
export interface DaySpan {
  /** As submitted. */
  from: string;
  to: string;
  /** ISO 8601, for lists: `since` inclusive, `until` exclusive. */
  since: string | undefined;
  until: string | undefined;
}

/** The range in the address. An invalid day filters nothing. */
export function daySpanOf({ req }: PageContext, timeZone: string): DaySpan {
  const from = req.query('since') ?? '';
  const to = req.query('until') ?? '';
  return { from, to, since: beginOfDay(from, timeZone), until: endOfDay(to, timeZone) };
}

/** True when a submitted day is invalid. */
export function isFaulty({ from, to, since, until }: DaySpan): boolean {
  return (from !== '' && since === undefined) || (to !== '' && until === undefined);
}

/** The range as text for the filter button. */
export function formatSpan({ from, to, since, until }: DaySpan): string[] {
  return [...(since === undefined ? [] : [`from ${from}`]), ...(until === undefined ? [] : [`to ${to}`])];
}

export function DaySpanFields({ from, to, since, until }: DaySpan) {
  const fault = (text: string, instant: string | undefined): string | undefined =>
    text === '' || instant !== undefined ? undefined : 'Not a valid date, so it was ignored. Enter it as 2026-01-31.';
  return (
    <>
      <Field name="since" label="From" type="date" value={from} error={fault(from, since)} />
      <Field name="until" label="To (inclusive)" type="date" value={to} error={fault(to, until)} />
    </>
  );
}

/** The address of the same list as CSV. */
export function csvAddress(path: string, filter: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(filter).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return `${path}?${new URLSearchParams([...given, ['format', 'csv']]).toString()}`;
}
