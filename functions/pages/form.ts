// What a form has sent, and what becomes of a mistake in it: the page again, with the reason.

import { z } from '@hono/zod-openapi';
import { AppError, type ErrorCode } from '@holdfast/kit/app-error';
import { refuseInvalid } from '../../shared/http/problem.ts';
import type { PageContext } from './page-routes.ts';

export interface Form {
  /** What the field holds, without blanks around it; empty where it was not sent. */
  text(name: string): string;
  /** The same with its blanks: for passwords. */
  exact(name: string): string;
  /** Every value of a field that can be sent several times. */
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

/** The value as the schema has it; else throws `invalid`, naming each field. */
export function parsed<const S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (!result.success) refuseInvalid({ success: false, error: { issues: result.error.issues } });
  return result.data as z.output<S>;
}

/** A person can mend these, or try again. */
const MENDABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'invalid',
  'conflict',
  'confirmation_needed',
  'not_enough_disk',
  'not_supported',
  'upstream',
  'unavailable',
]);

export type Attempt<T> = { done: T; refused?: undefined } | { done?: undefined; refused: AppError };

/** Does the work; what a person can mend is handed back instead of thrown. `also`: codes that the form speaks of itself. */
export async function attempt<T>(work: () => Promise<T>, ...also: ErrorCode[]): Promise<Attempt<T>> {
  try {
    return { done: await work() };
  } catch (error) {
    if (error instanceof AppError && (MENDABLE.has(error.code) || also.includes(error.code))) return { refused: error };
    throw error;
  }
}

/** What is wrong with the field, for the place beside it. */
export function faultOf(refused: AppError | undefined, name: string): string | undefined {
  return refused?.fields.find(({ path }) => path === name || path.startsWith(`${name}.`))?.message;
}
