// GET /api/retention/preview: what a run with the policy in force, or with days of one's own, would delete.

import { AppError, type FieldError } from '../domain/app-error.ts';
import { daysFault, daysInWords } from '../domain/retention-change.ts';
import { KEEP_ALL, type Retained, RETAINED, type RetentionPolicy, type RetentionUnit } from '../domain/retention.ts';
import { type QuickPreview, quickPreview, type QuickPreviewDeps } from './quick-preview.ts';
import { knownUnit, type RetentionVariables } from './retention-state.ts';

export interface PreviewWish {
  /** Days as text; with at least one, exactly these types are previewed. */
  days: Partial<Record<Retained, string | undefined>>;
  /** ISO 8601. */
  cutoff: string | undefined;
}

export type ShownPreview = Omit<QuickPreview, 'limits'> & { unit: RetentionUnit };

/** Rejects with `unavailable` when the database of the core does not answer. */
export async function showPreview(
  deps: QuickPreviewDeps & { settings: RetentionVariables },
  { days, cutoff }: PreviewWish,
): Promise<ShownPreview> {
  const unit = knownUnit(deps);
  const policy = policyGiven(days, unit);
  const moment = cutoff === undefined ? undefined : new Date(cutoff);
  const { limits: _, ...preview } = await quickPreview(deps, { policy, unit, cutoff: moment });
  return { ...preview, unit };
}

function policyGiven(days: PreviewWish['days'], unit: RetentionUnit): RetentionPolicy | undefined {
  const given = RETAINED.filter((type) => days[type] !== undefined);
  const fields: FieldError[] = [];
  const policy: RetentionPolicy = { ...KEEP_ALL };
  for (const type of given) {
    const text = days[type] ?? '';
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (daysFault(value, unit) === undefined) policy[type] = value;
    else fields.push({ path: type, message: `must be ${daysInWords(unit)}, not ${JSON.stringify(text.slice(0, 40))}` });
  }
  if (fields.length > 0)
    throw new AppError('invalid', fields.map(({ path, message }) => `${path}: ${message}`).join('; '), { fields });
  return given.length === 0 ? undefined : policy;
}
