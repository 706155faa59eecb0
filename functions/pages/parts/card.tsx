// Parts of a page: cards, facts, tabs, search, text to copy, and confirmations.

import type { Child } from 'hono/jsx';

interface CardProps {
  title?: Child;
  id?: string;
  /** Beside the heading. */
  aside?: Child;
  children: Child;
  class?: string;
}

export function Card({ title, id, aside, children, class: kind = '' }: CardProps) {
  return (
    <section class={`card ${kind}`.trim()} id={id}>
      {title === undefined ? null : (
        <div class="head">
          <h2>{title}</h2>
          {aside}
        </div>
      )}
      {children}
    </section>
  );
}

/** A list of names and values. Undefined values are omitted. */
export function Facts({ of }: { of: Readonly<Record<string, Child | undefined>> }) {
  return (
    <dl class="facts">
      {Object.entries(of)
        .filter(([, value]) => value !== undefined)
        .map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface TabsProps {
  label: string;
  tabs: readonly (readonly [path: string, label: string])[];
  current: string;
}

export function Tabs({ label, tabs, current }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      <ul>
        {tabs.map(([path, text]) => (
          <li>
            <a href={path} aria-current={path === current ? 'page' : undefined}>
              {text}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface SearchProps {
  action: string;
  label: string;
  value: string;
  placeholder?: string;
  /** More fields. */
  children?: Child;
}

/** A search form for the current page. The field is named `search`. */
export function Search({ action, label, value, placeholder, children }: SearchProps) {
  return (
    <form class="search" method="get" action={action} role="search">
      <label class="silent" for="search">
        {label}
      </label>
      <input id="search" name="search" type="search" value={value} placeholder={placeholder ?? label} maxlength={200} />
      {children}
      <button type="submit">Search</button>
    </form>
  );
}

/** Text with a copy button. The script shows the button. */
export function Copyable({ text, id, label = 'Copy' }: { text: string; id: string; label?: string }) {
  return (
    <span class="copyable">
      <code id={id}>{text}</code>
      <button type="button" class="quiet" data-copy={id} aria-live="polite" hidden>
        {label}
      </button>
    </span>
  );
}

interface ConfirmProps {
  /** The button that opens the confirmation: `Deactivate…`. */
  label: string;
  /** The row that it belongs to, for screen readers: `Lantern 1`. */
  of?: string;
  /** The path of the form. */
  action: string;
  /** The button that confirms: `Deactivate ann`. */
  button: string;
  /** The consequences, and fields, if any. */
  children: Child;
  danger?: boolean;
  /**
   * Keeps the confirmation open when the page replaces a region. Default: made from `action` and
   * `button`.
   */
  id?: string;
}

/** A confirmation for actions that can't be undone. Works without scripts. */
export function Confirm({
  label,
  of,
  action,
  button,
  children,
  danger = true,
  id = idOf(action, button),
}: ConfirmProps) {
  return (
    <details class="confirm" id={id}>
      <summary class={danger ? 'button danger' : 'button'}>
        {label}
        {of === undefined ? null : <span class="silent"> {of}</span>}
      </summary>
      <form method="post" action={action}>
        {children}
        <button type="submit" class={danger ? 'danger' : undefined}>
          {button}
        </button>
      </form>
    </details>
  );
}

function idOf(action: string, button: string): string {
  return `confirm${`${action}-${button}`.replaceAll(/[^\p{L}\p{N}]+/gu, '-')}`;
}

interface TypedConfirmProps {
  /** The text to type. */
  words: string;
  name?: string;
  error?: string | undefined;
}

/** A field that browsers accept only with this exact text. The server checks it again. */
export function TypedConfirm({ words, name = 'confirm', error }: TypedConfirmProps) {
  return (
    <div class="field">
      <label for={name}>
        Type <strong>{words}</strong> to confirm
      </label>
      {error === undefined ? null : <p class="fault">{error}</p>}
      <input
        id={name}
        name={name}
        type="text"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        required
        pattern={words.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`)}
        title={`Type exactly: ${words}`}
      />
    </div>
  );
}
