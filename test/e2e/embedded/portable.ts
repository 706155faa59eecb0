// The files of tests that also run on the light stack in containers (`HOLDFAST_STACK_FILE`), and the settings that they
// want. They see what differs there: addresses of clients, files that two containers share, a disk of another.

const PORTABLE = ['audit', 'devices', 'issued-certificates', 'service-accounts', 'vacuum'];

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
