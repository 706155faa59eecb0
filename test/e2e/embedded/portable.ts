// The files of tests that use a stack through its doors alone, and the settings that they want:
// they run on an embedded stack of their own and on any other that stands (`HOLDFAST_STACK_FILE`).

const PORTABLE = [
  'audit',
  'core-contract',
  'devices',
  'enrollment',
  'identity-contract',
  'issued-certificates',
  'metrics',
  'people',
  'retention-page',
  'service-accounts',
  'sign-in',
  'stream',
  'vacuum',
  'verify',
  'authentication',
];

export const PORTABLE_FILES = PORTABLE.map((name) => `test/e2e/embedded/${name}.test.ts`);

/** A stack for all of them runs with these, and says so in its file. */
export const PORTABLE_SETTINGS = {
  ENROLLMENT_TTL_MINUTES: '2880',
  METRICS_TOKEN: 'metrics-token-of-the-stack-tests',
  MON_AUTOVACUUM_INTERVAL: '1',
  MON_DATABASE_INTERVAL: '1',
  MON_PROBE_INTERVAL: '2',
  MON_USER_EXPIRY_CHECK_INTERVAL: '1',
  UPDATES_URL: 'off',
  USERS_HIDDEN_PREFIXES: 'svc_,adm_,ak-outpost-,akadmin,ghost-',
};
