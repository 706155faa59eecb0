// The variables of retention, each by what it changes in the files that a core reads when it
// starts.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse } from 'yaml';
import type { SettingName } from '../../../shared/settings/table.ts';
import { cleanEnvironment, home } from './embedded.ts';

interface Files {
  cot: number | null;
  geochat: number | null;
  cron: string;
}

function filesUnder(variables: Partial<Record<SettingName, string>>): Files {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-retention-'));
  const env = cleanEnvironment({ CORE_RETENTION_UNIT: 'days', ...variables, CORE_DATA_DIR: directory });
  const read = (name: string): unknown => parse(readFileSync(join(directory, 'conf/retention', name), 'utf8'));
  try {
    const program = [join(home, 'dist/sync-retention.js'), '--env', '/dev/null'];
    execFileSync(join(home, 'node_modules/.bin/node'), program, { env, stdio: 'ignore' });
    const { dataRetentionMap } = read('retention-policy.yml') as { dataRetentionMap: Omit<Files, 'cron'> };
    const { cronExpression } = read('retention-service.yml') as { cronExpression: string };
    return { cot: dataRetentionMap.cot, geochat: dataRetentionMap.geochat, cron: cronExpression };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

export const RETENTION_BEHAVIOURS = {
  COT_RETENTION_DAYS: async () => {
    expect(filesUnder({})).toEqual({ cot: null, geochat: null, cron: '-' });
    expect(filesUnder({ COT_RETENTION_DAYS: '31' })).toEqual({ cot: 31, geochat: null, cron: '0 0 3 * * ?' });
  },
  GEOCHAT_RETENTION_DAYS: async () => {
    expect(filesUnder({ GEOCHAT_RETENTION_DAYS: '32' })).toEqual({ cot: null, geochat: 32, cron: '0 0 3 * * ?' });
  },
  RETENTION_CRON: async () => {
    expect(filesUnder({ RETENTION_CRON: '0 0 4 ? * SUN' }).cron).toBe('0 0 4 ? * SUN');
  },
  CORE_RETENTION_UNIT: async () => {
    const variables = { COT_RETENTION_DAYS: '31', RETENTION_CRON: '0 0 4 ? * SUN', CORE_RETENTION_UNIT: 'seconds' };
    expect(filesUnder(variables)).toEqual({ cot: 2_678_400, geochat: null, cron: '0 0 4 ? * 0' });
  },
} satisfies Partial<Record<SettingName, () => Promise<void>>>;
