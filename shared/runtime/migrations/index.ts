// The migrations of our own database, in order. To add one: a new file, a line here; never change
// an old one.

import type { Migration } from '@holdfast/kit/migrate';
import stackStart from './0001-stack-start.sql';
import jobsAndHealth from './0002-jobs-and-health.sql';
import alerts from './0003-alerts.sql';
import appliedPasswords from './0004-applied-passwords.sql';
import signIns from './0005-sign-ins.sql';
import audit from './0006-audit.sql';
import certificates from './0007-certificates.sql';
import retention from './0008-retention.sql';
import databaseCare from './0009-database-care.sql';
import alertRemedies from './0010-alert-remedies.sql';
import healthTrend from './0011-health-trend.sql';
import canarySigned from './0012-canary-signed.sql';
import replicas from './0013-replicas.sql';
import healthOfEachProcess from './0014-health-of-each-process.sql';

export const MIGRATIONS: readonly Migration[] = [
  { number: 1, name: 'stack-start', sql: stackStart },
  { number: 2, name: 'jobs-and-health', sql: jobsAndHealth },
  { number: 3, name: 'alerts', sql: alerts },
  { number: 4, name: 'applied-passwords', sql: appliedPasswords },
  { number: 5, name: 'sign-ins', sql: signIns },
  { number: 6, name: 'audit', sql: audit },
  { number: 7, name: 'certificates', sql: certificates },
  { number: 8, name: 'retention', sql: retention },
  { number: 9, name: 'database-care', sql: databaseCare },
  { number: 10, name: 'alert-remedies', sql: alertRemedies },
  { number: 11, name: 'health-trend', sql: healthTrend },
  { number: 12, name: 'canary-signed', sql: canarySigned },
  { number: 13, name: 'replicas', sql: replicas },
  { number: 14, name: 'health-of-each-process', sql: healthOfEachProcess },
];
