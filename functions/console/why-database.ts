// Why the database is as large as it is, in sentences: against its thresholds, until when there is room, and what grew.

import { bytesInWords, counted, percentageOf } from '../../shared/domain/amounts.ts';
import { limitsOf } from '../../shared/domain/evaluate.ts';
import { ended } from '../../shared/domain/plain-text.ts';
import type { ModuleThresholds } from '../../shared/domain/thresholds.ts';
import type { DatabaseGrowth } from '../../shared/health/database-growth.ts';

type Seen = Partial<DatabaseGrowth & { total_bytes: number }>;

/** Nothing about what was not measured. */
export function whyTheDatabase(data: Record<string, unknown>, thresholds: ModuleThresholds | undefined): string[] {
  const seen = data as Seen;
  if (seen.total_bytes === undefined || thresholds === undefined) return [];
  return [againstLimits(seen.total_bytes, thresholds), ...forecast(seen), ...fillers(seen), ...grown(seen)];
}

function againstLimits(total: number, thresholds: ModuleThresholds): string {
  const { warning, critical } = limitsOf(thresholds);
  const size = bytesInWords(total);
  if (total >= critical) return `${size} is beyond ${bytesInWords(critical)}, from which it is critical.`;
  if (total >= warning)
    return `${size} is beyond ${bytesInWords(warning)}, from which it is a warning; from ${bytesInWords(critical)} it is critical.`;
  return `${size} of ${bytesInWords(warning)}, from which it is a warning (${Math.round(percentageOf(total, warning))} %).`;
}

function forecast({ growth_bytes_per_day: perDay, full_in_days: days, growth_reason: reason }: Seen): string[] {
  if (perDay === undefined || perDay === null)
    return reason ? [`When the disk is full is not known yet: ${ended(reason)}`] : [];
  if (perDay <= 0) return ['It does not grow.'];
  const pace = `It grows by ${bytesInWords(perDay)} a day`;
  if (days === undefined || days === null)
    return [reason ? `${pace}. When its disk is full: ${ended(reason)}` : `${pace}.`];
  return [`${pace}: its disk is full in ${days < 1 ? 'less than a day' : counted(Math.floor(days), 'day')}.`];
}

function fillers({ fillers: seen }: Seen): string[] {
  const [type] = seen?.types ?? [];
  const [uid] = seen?.uids ?? [];
  if (type === undefined || uid === undefined || seen === null || seen === undefined) return [];
  const time = seen.seconds >= 86_400 ? 'the last day' : 'the last minutes';
  const who = uid.callsign ? `${uid.callsign} (${uid.name})` : uid.name;
  return [`Most of ${time}: ${type.name} (${percent(type.share)}), and the client ${who} (${percent(uid.share)}).`];
}

function grown({ grown_tables: tables }: Seen): string[] {
  const [first] = tables ?? [];
  if (first === undefined || first.grown_bytes <= 0) return [];
  const { schema, table, grown_bytes: bytes, grown_days: days } = first;
  return [`The table ${schema}.${table} grew most: by ${bytesInWords(bytes)} in ${counted(Math.round(days), 'day')}.`];
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
