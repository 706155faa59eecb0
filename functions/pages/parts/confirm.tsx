// What cannot be taken back asks once: what will happen, and one button that says what it does. Works without scripts.

import type { Child } from 'hono/jsx';

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
