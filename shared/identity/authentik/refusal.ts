// What the identity provider says when it refuses something: field errors in any of their shapes, as ours.

import { AppError, type FieldError } from '@holdfast/kit/app-error';
import { foreignWords } from '@holdfast/kit/foreign-words';
import { shortened } from '@holdfast/kit/text';

const MOST_FIELDS = 10;
const MOST_DEPTH = 4;
const MOST_CHARACTERS = 400;

/** Our names of what the provider calls otherwise. */
const OURS: Record<string, string> = {
  is_active: 'isActive',
  expires: 'expiresAt',
  user: 'accountId',
  pk: 'accountId',
  groups_by_name: 'group',
  non_field_errors: '',
  detail: '',
};

/** A refusal by the provider: 400. */
export interface Refusal {
  /** `invalid`, with fields by our names. */
  error: AppError;
  /** The members that it names, by the provider's names. */
  members: readonly string[];
}

/** The words of an error without fields; empty when there are none. */
export function wordsOf(json: unknown): string {
  return isRecord(json) && typeof json['detail'] === 'string' ? json['detail'] : '';
}

export function refusalOf(json: unknown, system: string, secrets: readonly string[]): Refusal {
  const fields: FieldError[] = [];
  collect(json, [], 0);

  function collect(value: unknown, path: readonly string[], depth: number): void {
    if (fields.length >= MOST_FIELDS || depth > MOST_DEPTH) return;
    if (typeof value === 'string') {
      const message = foreignWords(value, secrets);
      const shown = shortened(foreignWords(path.join('.'), secrets), 100);
      if (message !== '') fields.push({ path: shown, message });
    } else if (Array.isArray(value)) {
      for (const each of value.slice(0, MOST_FIELDS)) collect(each, path, depth + 1);
    } else if (isRecord(value)) {
      for (const [name, each] of Object.entries(value).slice(0, MOST_FIELDS)) {
        collect(
          each,
          [...path, nameOf(name, depth)].filter((part) => part !== ''),
          depth + 1,
        );
      }
    }
  }

  const said = fields.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join(' ');
  const message = `${system} refuses it${said === '' ? ', and does not say why' : `: ${shortened(said, MOST_CHARACTERS)}`}`;
  return {
    error: new AppError('invalid', message, { fields }),
    members: isRecord(json) ? Object.keys(json) : [],
  };
}

function nameOf(name: string, depth: number): string {
  return depth === 0 ? (Object.hasOwn(OURS, name) ? (OURS[name] ?? name) : name) : name;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
