// The text of retention-service.yml: one schedule, in the cron of the core. A bare `-` is no YAML, and means the same as `"-"`.

import { isScalar } from 'yaml';
import { NEVER, type RetentionUnit } from '../domain/retention.ts';
import { entriesOf, type Entry, type OpenYaml, openYaml, withEntry, withHeadLine, YamlFault } from './yaml-edit.ts';

const NAME = 'cronExpression';

/** Throws a YamlFault. */
export function readSchedule(text: string): string {
  if (text.trim() === NEVER) return NEVER;
  const { entry, yaml } = opened(quoted(text));
  const { value, key } = entry;
  const cron = isScalar(value) && typeof value.value === 'string' ? value.value.trim() : '';
  if (cron === '' || /\p{Cc}/u.test(cron))
    throw new YamlFault(`${NAME} is no schedule: write it in quotes, "-" for never`, yaml.lineOf(value ?? key));
  return cron;
}

function opened(text: string): { entry: Entry; yaml: OpenYaml } {
  const yaml = openYaml(text);
  const entry = entriesOf(yaml.root, yaml).find(({ name }) => name === NAME);
  if (entry === undefined) throw new YamlFault(`${NAME} is missing`, 1);
  return { entry, yaml };
}

function quoted(text: string): string {
  return text.replaceAll(/^([ \t]*cronExpression:[ \t]*)-(?=[ \t]*(?:#.*)?\r?$)/gm, '$1"-"');
}

/** The text with that schedule, and a comment on top that says how it is read. Throws a YamlFault. */
export function withSchedule(text: string, cron: string, unit: RetentionUnit | undefined): string {
  if (text.trim() === NEVER) return newSchedule(cron, unit);
  const whole = quoted(text);
  const { entry, yaml } = opened(whole);
  const next = withHeadLine(withEntry(whole, yaml.root, entry, JSON.stringify(cron)), FIELDS, dialectLine(unit));
  if (readSchedule(next) === cron) return next;
  throw new YamlFault(`it is written in a way that cannot be changed here; write ${NAME}: "-" on a line of its own`, 1);
}

const FIELDS = 'second minute hour day-of-month month day-of-week';

function dialectLine(unit: RetentionUnit | undefined): string {
  if (unit === undefined) return `# ${FIELDS}, as the core counts weekdays; "-" for never.`;
  if (unit === 'days')
    return `# Core that counts days: Quartz, ${FIELDS} [year], 1 = Sunday, ? in one day field; "-" for never.`;
  return `# Core that counts seconds: Spring, ${FIELDS}, 0 and 7 = Sunday; "-" for never.`;
}

export function newSchedule(cron: string, unit: RetentionUnit | undefined): string {
  return `${dialectLine(unit)}\n${NAME}: ${JSON.stringify(cron)}\n`;
}
