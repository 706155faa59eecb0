// Every variable of Holdfast, once: the source of .env.template, of the README's table and of the checks at start.

import { isEmailAddress } from '../domain/email-address.ts';
import { isIpAddress } from '../domain/host-name.ts';
import {
  databaseSize,
  distinguishedName,
  fraction,
  hostNameOrAddress,
  isAddressOrNetwork,
  keyedUrl,
  type Kind,
  listOf,
  mailSender,
  oneOf,
  quartzSchedule,
  reachableHost,
  secretText,
  secretUrl,
  text,
  trueOrFalse,
  url,
  urlOrOff,
  wholeNumber,
} from './setting-kinds.ts';

export const SECTIONS = {
  retention: 'Retention (nothing is ever deleted while these are unset)',
  database: 'Database tuning (needs a restart of the database)',
  deployment: 'Deployment',
  secrets: 'Passwords (generated once and kept when unset)',
  people: 'People and sign-in',
  alerts: 'Alerts',
  places: 'Where each part stands (set by the stack itself; set one to use a part that stands elsewhere)',
} as const;

export type Section = keyof typeof SECTIONS;

/** One variable. `initial` is the text used when nothing sets it; without it the value may be undefined. */
export interface Setting<T = unknown> {
  kind: Kind<T>;
  section: Section;
  /** What it does, in one line. */
  about: string;
  /** A good value, for messages and the template. */
  example: string;
  initial: string | undefined;
}

interface Description {
  section: Section;
  about: string;
  example: string;
}

function optional<T>(kind: Kind<T>, description: Description): Setting<T | undefined> {
  return { kind, ...description, initial: undefined };
}

function withDefault<T>(kind: Kind<T>, initial: string, description: Omit<Description, 'example'>): Setting<T> {
  return { kind, ...description, example: initial, initial };
}

const days = wholeNumber(1, 36500, 'days');
const groupName = text(
  'a group name of letters, digits, blanks and . _ -',
  /^(?=.{1,64}$)[A-Za-z0-9._-]+( +[A-Za-z0-9._-]+)*$/,
);
const printable = /^[\x20-\x7e]{1,1024}$/;
const databasePassword = secretText('1 to 1024 printable ASCII characters', printable);
const visibleSecret = secretText('printable ASCII characters without blanks', /^[\x21-\x7e]{1,1024}$/);
const longSecret = secretText('32 to 1024 printable ASCII characters without blanks', /^[\x21-\x7e]{32,1024}$/);

export const SETTINGS = {
  COT_RETENTION_DAYS: optional(days, {
    section: 'retention',
    about: 'Delete CoT messages older than this many days',
    example: '30',
  }),
  GEOCHAT_RETENTION_DAYS: optional(days, {
    section: 'retention',
    about: 'Delete chat messages older than this many days',
    example: '90',
  }),
  RETENTION_CRON: optional(quartzSchedule(), {
    section: 'retention',
    about:
      'When retention runs: Quartz with seconds, in the time zone of the core (default 0 0 3 * * ? once days are set)',
    example: '0 0 3 * * ?',
  }),
  CORE_RETENTION_UNIT: optional(oneOf('days', 'seconds'), {
    section: 'retention',
    about:
      'What the core counts: seconds for a TAK Server release, days for the embedded core; needed with any of the above (embedded: set by itself)',
    example: 'days',
  }),

  DB_AUTOVACUUM_SCALE_FACTOR: withDefault(fraction(0, 1), '0.05', {
    section: 'database',
    about: 'Fraction of dead rows that starts an autovacuum (PostgreSQL ships 0.2)',
  }),
  DB_AUTOVACUUM_COST_LIMIT: withDefault(wholeNumber(1, 10000), '1000', {
    section: 'database',
    about: 'I/O cost limit of an autovacuum cycle (PostgreSQL ships 200)',
  }),
  DB_MAINTENANCE_WORK_MEM: withDefault(databaseSize(1024 ** 2, '1MB'), '256MB', {
    section: 'database',
    about: 'Memory of each vacuum worker, up to three at once (PostgreSQL ships 64MB; use 128MB on a 2 GB host)',
  }),

  SERVER_ADDRESS: optional(reachableHost(), {
    section: 'deployment',
    about: 'Name or address that phones use to reach this server (embedded default: 127.0.0.1 or the --listen address)',
    example: 'cot.example.org',
  }),
  PUBLIC_ADDRESSES: optional(listOf('addresses', isIpAddress), {
    section: 'deployment',
    about: 'Addresses that lead to this machine although none of its interfaces has them (behind NAT)',
    example: '198.51.100.7',
  }),
  DEPLOY_MODE: optional(oneOf('direct', 'subdomain'), {
    section: 'deployment',
    about: 'subdomain: public certificates and host names by the reverse proxy; direct: the own CA on one address',
    example: 'subdomain',
  }),
  CORE_ENROLLMENT_PORT: withDefault(wholeNumber(1, 65535), '8446', {
    section: 'deployment',
    about: 'Port on which devices enroll',
  }),
  COMPOSE_FILE: optional(text('a colon-separated list of files', /^[^\p{Cc}:]+(:[^\p{Cc}:]+)*$/u), {
    section: 'deployment',
    about: 'Compose files, each layered over the one before',
    example: 'compose/compose.yaml:compose/compose.local.yaml',
  }),

  CORE_DB_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: 'Password of the core database owner (martiuser)',
    example: 'generated',
  }),
  CORE_READER_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: 'Password of the role that reads the core database for health and history (holdfast_ro)',
    example: 'generated',
  }),
  APP_DB_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: 'Password of the owner of our own database (holdfast)',
    example: 'generated',
  }),
  IDENTITY_DB_PASSWORD: optional(databasePassword, {
    section: 'secrets',
    about: "Password of the owner of the identity provider's database (identity)",
    example: 'generated',
  }),
  IDENTITY_SECRET_KEY: optional(longSecret, {
    section: 'secrets',
    about: 'Key of the identity provider, which seals its tokens; with another one they are lost',
    example: 'generated',
  }),
  LDAP_BIND_PASSWORD: optional(secretText(), {
    section: 'secrets',
    about: 'Password of the LDAP service account (adm_ldapservice)',
    example: 'generated',
  }),
  CORE_WEBADMIN_PASSWORD: optional(secretText(), {
    section: 'secrets',
    about: 'Password of the first administrator (webadmin)',
    example: 'generated',
  }),
  AUDIT_KEY: optional(visibleSecret, {
    section: 'secrets',
    about: 'Key that chains the audit log; kept outside the database',
    example: 'generated',
  }),
  SESSION_KEY: optional(visibleSecret, {
    section: 'secrets',
    about: 'Key that signs session cookies and API tokens; a new one ends them all',
    example: 'generated',
  }),

  ENROLLMENT_TTL_MINUTES: withDefault(wholeNumber(1, 525600, 'minutes'), '15', {
    section: 'people',
    about: 'Lifetime of an enrollment password in minutes',
  }),
  ADMIN_GROUP: withDefault(groupName, 'stack_admin', {
    section: 'people',
    about: 'Group whose members may do everything',
  }),
  VIEWER_GROUP: withDefault(groupName, 'stack_viewer', {
    section: 'people',
    about: 'Group whose members may read everything',
  }),
  USERS_HIDDEN_PREFIXES: withDefault(
    listOf('name prefixes', (part) => /^[A-Za-z0-9._-]{1,64}$/.test(part)),
    'svc_,adm_,ak-outpost-,akadmin',
    { section: 'people', about: 'Accounts hidden from user management, by the start of their name' },
  ),
  KEEP_CLIENT_KEYS: withDefault(trueOrFalse(), 'true', {
    section: 'people',
    about: 'Keep the private keys of certificates made here, so that they can be downloaded again',
  }),
  TRUSTED_PROXIES: optional(listOf('addresses or networks', isAddressOrNetwork), {
    section: 'people',
    about: 'Proxies whose X-Forwarded-For is believed; nobody else is',
    example: '172.30.0.2',
  }),
  METRICS_TOKEN: optional(visibleSecret, {
    section: 'people',
    about: 'Bearer token that may read health, metrics and alerts, nothing else',
    example: 'tGm4Yk2sVq9wXc7Rz5Lb',
  }),

  ALERT_EMAIL_TO: optional(listOf('e-mail addresses', isEmailAddress), {
    section: 'alerts',
    about: 'Who receives alerts by e-mail; needs SMTP_URL or RESEND_API_KEY',
    example: 'duty@example.org',
  }),
  ALERT_EMAIL_FROM: optional(mailSender(), {
    section: 'alerts',
    about: 'Sender of alerts (default Holdfast <holdfast@SERVER_ADDRESS>; for Resend one of a domain verified there)',
    example: 'holdfast@example.org',
  }),
  SMTP_URL: optional(secretUrl('smtp', 'smtps'), {
    section: 'alerts',
    about: 'Mail server: smtp:// uses STARTTLS when offered, smtps:// TLS from the start',
    example: 'smtp://user:password@mail.example.org:587',
  }),
  RESEND_API_KEY: optional(secretText(), {
    section: 'alerts',
    about: 'Send e-mail by Resend instead of SMTP; needs ALERT_EMAIL_FROM',
    example: 're_0123456789',
  }),
  ALERT_SMS_TO: optional(
    listOf('telephone numbers with + and country code', (part) => /^\+[1-9]\d{6,14}$/.test(part)),
    { section: 'alerts', about: 'Who receives alerts by SMS; needs SMS_PROVIDER', example: '+15551234567' },
  ),
  SMS_PROVIDER: optional(oneOf('twilio', 'brevo'), {
    section: 'alerts',
    about: 'Who sends the SMS',
    example: 'twilio',
  }),
  TWILIO_ACCOUNT_SID: optional(text('an account SID', /^[A-Za-z0-9]{2,64}$/), {
    section: 'alerts',
    about: 'Twilio account',
    example: 'AC00000000000000000000000000000000',
  }),
  TWILIO_AUTH_TOKEN: optional(secretText(), { section: 'alerts', about: 'Twilio token', example: 'from Twilio' }),
  TWILIO_FROM: optional(text('a telephone number or sender name', /^\+?[A-Za-z0-9 ]{3,20}$/), {
    section: 'alerts',
    about: 'Number or name that the SMS comes from',
    example: '+15557654321',
  }),
  BREVO_API_KEY: optional(secretText(), { section: 'alerts', about: 'Brevo key', example: 'from Brevo' }),
  HEARTBEAT_URL: optional(secretUrl('https', 'http'), {
    section: 'alerts',
    about: 'Fetched every minute while the overall status can be computed, so that a dead host is noticed elsewhere',
    example: 'https://heartbeat.example.org/ping/1234',
  }),

  UPDATES_URL: withDefault(urlOrOff('https', 'http'), 'https://endoflife.date/api', {
    section: 'places',
    about: 'Where newer releases of the parts are looked up once in six hours; off: nowhere',
  }),
  RESEND_URL: withDefault(keyedUrl(), 'https://api.resend.com', {
    section: 'places',
    about: 'Where Resend is asked to send e-mail',
  }),
  TWILIO_URL: withDefault(keyedUrl(), 'https://api.twilio.com', {
    section: 'places',
    about: 'Where Twilio is asked to send SMS (a region has an address of its own)',
  }),
  BREVO_URL: withDefault(keyedUrl(), 'https://api.brevo.com', {
    section: 'places',
    about: 'Where Brevo is asked to send SMS',
  }),
  DATABASE_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'Our own database (holdfast), as its owner',
    example: 'postgres://holdfast:password@127.0.0.1:5432/holdfast',
  }),
  CORE_DATABASE_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'The database of the core (cot), as a role that may read it and has pg_monitor',
    example: 'postgres://holdfast_ro:password@127.0.0.1:5432/cot',
  }),
  CORE_DATABASE_OWNER_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'The same database as its owner, for vacuum alone',
    example: 'postgres://martiuser:password@127.0.0.1:5432/cot',
  }),
  CORE_DATABASE_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory of that database (PGDATA) as this machine sees it, for the room on its disk',
    example: '/var/lib/postgresql/data',
  }),
  CORE_API_URL: optional(url('https'), {
    section: 'places',
    about: 'Admin API of the core',
    example: 'https://takserver:8443',
  }),
  CORE_ENROLLMENT_URL: optional(url('https'), {
    section: 'places',
    about: 'Enrollment of the core',
    example: 'https://takserver:8446',
  }),
  CORE_STREAMING_URL: optional(url('tls'), {
    section: 'places',
    about: 'CoT stream of the core',
    example: 'tls://takserver:8089',
  }),
  CORE_DATA_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory with the files of the core',
    example: '/opt/tak',
  }),
  IDENTITY_URL: optional(url('https', 'http'), {
    section: 'places',
    about: 'HTTP API of the identity provider',
    example: 'http://authentik-server:9000',
  }),
  IDENTITY_TOKEN: optional(visibleSecret, {
    section: 'places',
    about: 'API token at the identity provider',
    example: 'from the identity provider',
  }),
  LDAP_URL: optional(url('ldap', 'ldaps'), {
    section: 'places',
    about: 'Directory that checks passwords',
    example: 'ldap://authentik-ldap:3389',
  }),
  LDAP_BASE_DN: optional(distinguishedName(), {
    section: 'places',
    about: 'Base of the directory for the core',
    example: 'DC=core,DC=holdfast',
  }),
  LDAP_WEB_BASE_DN: optional(distinguishedName(), {
    section: 'places',
    about:
      'Base of the directory for our own sign-in, where app passwords do not count (default DC=web beside LDAP_BASE_DN)',
    example: 'DC=web,DC=holdfast',
  }),
  CONTAINER_RUNTIME_URL: optional(url('unix', 'http', 'https', 'tcp'), {
    section: 'places',
    about: 'Container runtime, read only; container health is left out while unset',
    example: 'unix:///run/docker.sock',
  }),
  LISTEN_ADDRESS: withDefault(hostNameOrAddress(), '127.0.0.1', {
    section: 'places',
    about: 'Address on which the API and the console listen (embedded: 127.0.0.1, and --listen over TLS)',
  }),
  API_PORT: withDefault(wholeNumber(1, 65535), '8080', {
    section: 'places',
    about: 'Port of the API and the console (embedded: 8080 plus --offset)',
  }),
  DATA_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory for files of our own, such as alerts while the database is away',
    example: '/var/lib/holdfast',
  }),
  LOG_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory whose *.log files /api/logs shows',
    example: '/var/log/holdfast',
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;

type Values = { readonly [K in SettingName]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never };

/** The settings in force, parsed and frozen. Unset ones without a default are undefined. */
export type Settings = Values;

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

/** True when `name` is a variable of this table. */
export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}
