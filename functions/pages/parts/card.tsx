// Parts of a page: a box with a heading, facts beside their names, tabs, a search, text to copy.

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

/** Names with what they are; what is undefined is left out. */
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
  /** Path and words. */
  tabs: readonly (readonly [path: string, label: string])[];
  current: string;
}

export function Tabs({ label, tabs, current }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      <ul>
        {tabs.map(([path, words]) => (
          <li>
            <a href={path} aria-current={path === current ? 'page' : undefined}>
              {words}
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

/** Asks the same page for less; the field is `search`. */
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

/** Text to take away; the button comes with the script. */
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
  /** On the button that opens it: `Deactivate…`. */
  label: string;
  /** In a list, what it is about, for whoever hears the button alone: `Lantern 1`. */
  of?: string;
  /** Where the form goes. */
  action: string;
  /** On the button that does it: `Deactivate ann`. */
  button: string;
  /** What will happen; and fields, if any. */
  children: Child;
  danger?: boolean;
  /** Of the whole; by it what is unfolded stays so where a page replaces a part of itself. Default: of what it does. */
  id?: string;
}

/**
 * What cannot be taken back asks once: what will happen, and one button that says what it does. Works without scripts.
 */
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
  /** What is to be typed. */
  words: string;
  name?: string;
  error?: string | undefined;
}

/** A field that browsers accept only with these words in it; the server asks again. */
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
