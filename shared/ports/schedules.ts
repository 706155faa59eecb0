// Crons as the cores read them. Quartz: the variable RETENTION_CRON and the embedded core. Spring: a TAK Server release.

export type CronDialect = 'quartz' | 'spring';

export interface Schedules {
  /** What is wrong with it, in words that follow "because"; undefined when nothing is. `-` is right. */
  fault(cron: string, dialect: CronDialect): string | undefined;
  /** The next times after that moment, at most `count`; none for `-` and for what cannot be read. */
  next(cron: string, dialect: CronDialect, timeZone: string, after: Date, count: number): Date[];
}
