// Reads submitted forms, and catches errors that the page shows beside the form.

import { z } from '@hono/zod-openapi';
import { AppError, type ErrorCode } from '@holdfast/kit/app-error';
import { refuseInvalid } from '../../shared/http/problem.ts';
import type { PageContext } from './page-routes.ts';

export interface Form {
  /** The trimmed value of the field. Empty when it was not submitted. */
  text(name: string): string;
  /** The value as submitted, for passwords. */
  exact(name: string): string;
  /** All values of a field that can occur several times. */
  all(name: string): string[];
  has(name: string): boolean;
}

export async function formOf(c: PageContext): Promise<Form> {
  const fields = new URLSearchParams(await c.req.text());
  const exact = (name: string): string => fields.get(name) ?? '';
  return {
    exact,
    text: (name) => exact(name).trim(),
    all: (name) => fields.getAll(name),
    has: (name) => fields.has(name),
  };
}

/** The value parsed by the schema. Throws `invalid`, naming each field. */
export function parsed<const S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (!result.success) refuseInvalid({ success: false, error: { issues: result.error.issues } });
  return result.data as z.output<S>;
}

/** Errors that the person can fix or retry. */
const RECOVERABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'invalid',
  'conflict',
  'confirmation_needed',
  'not_enough_disk',
  'not_supported',
  'upstream',
  'unavailable',
]);

export type Attempt<T> = { done: T; refused?: undefined } | { done?: undefined; refused: AppError };

/**
 * Runs the work. Returns recoverable errors instead of throwing them. `also`: further codes to
 * return.
 */
export async function attempt<T>(work: () => Promise<T>, ...also: ErrorCode[]): Promise<Attempt<T>> {
  try {
    return { done: await work() };
  } catch (error) {
    if (error instanceof AppError && (RECOVERABLE.has(error.code) || also.includes(error.code)))
      return { refused: error };
    throw error;
  }
}

/** The message about this field, if any. */
export function faultOf(refused: AppError | undefined, name: string): string | undefined {
  return refused?.fields.find(({ path }) => path === name || path.startsWith(`${name}.`))?.message;
}
