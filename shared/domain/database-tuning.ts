// The specification's three autovacuum settings.

export interface DatabaseTuning {
  /** Fraction of dead rows that starts an autovacuum. */
  scaleFactor: number;
  costLimit: number;
  /** With its unit, such as 256MB. */
  maintenanceWorkMem: string;
}
