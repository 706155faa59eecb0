// Runs one check of an enrollment diagnosis: a sentence, a remedy if it fails, and its duration. A
// check that cannot run is reported, and is never ok.

import { AppError, messageOf } from '@holdfast/kit/app-error';

export const ENROLLMENT_STAGES = ['account', 'name', 'port', 'chain', 'token', 'bind', 'groups', 'signing'] as const;
export type EnrollmentStage = (typeof ENROLLMENT_STAGES)[number];

export interface Found {
  ok: boolean;
  detail: string;
  /** Null when it is ok. */
  remedy: string | null;
  /** What a person should know besides. */
  notes: string[];
}

export interface Check extends Found {
  stage: EnrollmentStage;
  milliseconds: number;
}

export function well(detail: string, notes: readonly string[] = []): Found {
  return { ok: true, detail, remedy: null, notes: [...notes] };
}

export function wrong(detail: string, remedy: string): Found {
  return { ok: false, detail, remedy, notes: [] };
}

export interface Attempted<T> {
  /** Or why it could not be had, in a sentence. */
  got: { value: T } | { problem: string };
  milliseconds: number;
}

/** Never rejects, and ends in time; what goes on behind is not waited for. */
export async function attempted<T>(withinMs: number, work: () => Promise<T>): Promise<Attempted<T>> {
  const begin = performance.now();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const message = `There was no answer within ${withinMs / 1000} s`;
  const timer = setTimeout(() => reject(new AppError('unavailable', message)), withinMs);
  let got: Attempted<T>['got'];
  try {
    got = { value: await Promise.race([work(), late]) };
  } catch (error) {
    const text = error instanceof AppError ? messageOf(error) : 'Something failed within Holdfast; see its log';
    got = { problem: text.replace(/\.$/, '') };
  } finally {
    clearTimeout(timer);
  }
  return { got, milliseconds: Math.max(0, Math.round(performance.now() - begin)) };
}

/** `judge` turns what was had into a finding; what could not be had is one too. */
export function checkOf<T>(
  stage: EnrollmentStage,
  { got, milliseconds }: Attempted<T>,
  remedy: string,
  judge: (value: T) => Found,
): Check {
  const found = 'value' in got ? judge(got.value) : wrong(`Couldn't check this: ${got.problem}.`, remedy);
  return { stage, milliseconds, ...found };
}

export function notTried(stage: EnrollmentStage, because: string, remedy: string): Check {
  return { stage, milliseconds: 0, ...wrong(`Not checked: ${because}.`, remedy) };
}
