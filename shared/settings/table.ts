// Defines every variable of Holdfast once: the source of .env.template, docs/settings.md and the
// checks at start.

import { isEmailAddress } from '@holdfast/kit/addresses';
import { BACKUP_SETTINGS } from './backup.ts';
import { DEPLOYMENT_SETTINGS } from './deployment.ts';
import {
  databaseSize,
  distinguishedName,
  fraction,
  hostNameOrAddress,
  isAddressOrNetwork,
  keyedUrl,
  listOf,
  mailSender,
  oneOf,
  quartzSchedule,
  secretText,
  secretUrl,
  text,
  thinning,
  trueOrFalse,
  url,
  urlOrOff,
  urls,
  visibleSecret,
  wholeNumber,
} from './kinds.ts';
import { optional, type Setting, withDefault } from './setting.ts';

/** The variables that locate each service. Section `places`. */
export const PLACE_SETTINGS = {
  UPDATES_URL: withDefault(urlOrOff('https', 'http'), 'https://endoflife.date/api', {
    section: 'places',
    about:
      'Where to check for newer releases of PostgreSQL and Node.js every six hours, or a mirror of it; off: check for nothing',
  }),
  UPDATES_GITHUB_URL: withDefault(url('https', 'http'), 'https://api.github.com', {
    section: 'places',
    about: 'Where to check for newer releases of everything else in the stack, or a mirror of it',
  }),
  UPDATES_REPOSITORY: optional(text('OWNER/REPOSITORY', /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/), {
    section: 'places',
    about:
      'Repository of Holdfast itself there, to learn of its newer releases (default: the one that package.json names at GitHub)',
    example: 'example/holdfast',
  }),
  RESEND_URL: withDefault(keyedUrl(), 'https://api.resend.com', {
    section: 'places',
    about: 'Resend API that sends email',
  }),
  TWILIO_URL: withDefault(keyedUrl(), 'https://api.twilio.com', {
    section: 'places',
    about: 'Twilio API that sends SMS (each region has its own address)',
  }),
  BREVO_URL: withDefault(keyedUrl(), 'https://api.brevo.com', {
    section: 'places',
    about: 'Brevo API that sends SMS',
  }),
  DATABASE_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'Our own database (holdfast), as its owner',
    example: 'postgres://holdfast:password@127.0.0.1:5432/holdfast',
  }),
  CORE_DATABASE_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'The database of the core (cot), as a role with read access and pg_monitor',
    example: 'postgres://holdfast_ro:password@127.0.0.1:5432/cot',
  }),
  CORE_DATABASE_OWNER_URL: optional(secretUrl('postgres', 'postgresql'), {
    section: 'places',
    about: 'The same database as its owner, used only for a full vacuum',
    example: 'postgres://martiuser:password@127.0.0.1:5432/cot',
  }),
  CORE_DATABASE_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory of that database (PGDATA) as this machine sees it, to measure its free disk space',
    example: '/var/lib/postgresql/data',
  }),
  CORE_API_URL: optional(urls('https'), {
    section: 'places',
    about: 'Admin API of the core; of several nodes all, separated by commas: the first that can be reached is used',
    example: 'https://takserver:8443',
  }),
  CORE_ENROLLMENT_URL: optional(urls('https'), {
    section: 'places',
    about: 'Enrollment of the core; of several nodes all, as above',
    example: 'https://takserver:8446',
  }),
  CORE_STREAMING_URL: optional(urls('tls'), {
    section: 'places',
    about: 'CoT stream of the core; of several nodes all, as above',
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
      "Base of the directory for our own sign-in, where app passwords don't count (default DC=web beside LDAP_BASE_DN)",
    example: 'DC=web,DC=holdfast',
  }),
  CONTAINER_RUNTIME_URL: optional(url('unix', 'http', 'https', 'tcp'), {
    section: 'places',
    about: 'Container runtime, read only; container health is skipped while unset',
    example: 'unix:///run/docker.sock',
  }),
  RELAY_API_URL: optional(url('http', 'https'), {
    section: 'places',
    about: 'API of the video relay (MediaMTX), whose streams the console lists; none are listed while unset',
    example: 'http://127.0.0.1:9997',
  }),
  LISTEN_ADDRESS: withDefault(hostNameOrAddress(), '127.0.0.1', {
    section: 'places',
    about: 'Listen address of console, portal and API (embedded: 127.0.0.1, and --listen over TLS)',
  }),
  API_PORT: withDefault(wholeNumber(1, 65535), '8080', {
    section: 'places',
    about: 'Port of the API and the console (embedded: 8080 plus --offset)',
  }),
  PORTAL_PORT: withDefault(wholeNumber(1, 65535), '3000', {
    section: 'places',
    about: 'Port of the portal, which serves the same API (embedded: 3000 plus --offset)',
  }),
  DATA_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory for our own files, such as alerts while the database is unavailable',
    example: '/var/lib/holdfast',
  }),
  LOG_DIR: optional(text('an absolute path', /^\/[^\p{Cc}]{0,4095}$/u), {
    section: 'places',
    about: 'Directory whose *.log files /api/logs shows',
    example: '/var/log/holdfast',
  }),
} as const;

const days = wholeNumber(1, 36500, 'days');
const groupName = text(
  'a group name of letters, digits, spaces and . _ -',
  /^(?=.{1,64}$)[A-Za-z0-9._-]+( +[A-Za-z0-9._-]+)*$/,
);
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
      'Unit that the core counts in: seconds for a TAK Server release, days for the embedded core; required with any of the above (embedded: set automatically)',
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
  STREAM_THINNING: withDefault(thinning(), 'off', {
    section: 'stream',
    about:
      'While many clients are connected, pass on only the newest position of each uid, once in some seconds: off, auto, or rows CLIENTS:SECONDS such as 1000:120,10000:240',
  }),

  ...DEPLOYMENT_SETTINGS,

  ENROLLMENT_TTL_MINUTES: withDefault(wholeNumber(1, 525600, 'minutes'), '15', {
    section: 'people',
    about: 'Lifetime of an enrollment password in minutes',
  }),
  ADMIN_GROUP: withDefault(groupName, 'stack_admin', {
    section: 'people',
    about: 'Group whose members are administrators',
  }),
  VIEWER_GROUP: withDefault(groupName, 'stack_viewer', {
    section: 'people',
    about: 'Group whose members are viewers: they can read everything',
  }),
  USERS_HIDDEN_PREFIXES: withDefault(
    listOf('name prefixes', (part) => /^[A-Za-z0-9._-]{1,64}$/.test(part)),
    'svc_,adm_,ak-outpost-,akadmin',
    { section: 'people', about: 'Accounts hidden from user management, by name prefix' },
  ),
  KEEP_CLIENT_KEYS: withDefault(trueOrFalse(), 'true', {
    section: 'people',
    about: 'Keep the private keys of certificates made here, so that they can be downloaded again',
  }),
  TRUSTED_PROXIES: optional(listOf('addresses or networks', isAddressOrNetwork), {
    section: 'people',
    about: 'Proxies whose X-Forwarded-For and PROXY header are trusted. Each must write it on every port it passes on',
    example: '172.30.0.2',
  }),
  METRICS_TOKEN: optional(visibleSecret, {
    section: 'people',
    about: 'Bearer token that can read health, metrics and alerts, nothing else',
    example: 'tGm4Yk2sVq9wXc7Rz5Lb',
  }),
  ALERT_EMAIL_TO: optional(listOf('email addresses', isEmailAddress), {
    section: 'alerts',
    about: 'Recipients of alerts by email; needs SMTP_URL or RESEND_API_KEY',
    example: 'duty@example.org',
  }),
  ALERT_EMAIL_FROM: optional(mailSender(), {
    section: 'alerts',
    about:
      'Sender of alerts (default Holdfast <holdfast@SERVER_ADDRESS>; for Resend, an address in a domain verified there)',
    example: 'holdfast@example.org',
  }),
  SMTP_URL: optional(secretUrl('smtp', 'smtps'), {
    section: 'alerts',
    about: 'Mail server: smtp:// uses STARTTLS when offered, smtps:// uses TLS from the start',
    example: 'smtp://user:password@mail.example.org:587',
  }),
  RESEND_API_KEY: optional(secretText(), {
    section: 'alerts',
    about: 'Send email through Resend instead of SMTP; needs ALERT_EMAIL_FROM',
    example: 're_0123456789',
  }),
  ALERT_SMS_TO: optional(
    listOf('telephone numbers with + and country code', (part) => /^\+[1-9]\d{6,14}$/.test(part)),
    { section: 'alerts', about: 'Recipients of alerts by SMS; needs SMS_PROVIDER', example: '+15551234567' },
  ),
  SMS_PROVIDER: optional(oneOf('twilio', 'brevo'), {
    section: 'alerts',
    about: 'Service that sends the SMS',
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
    about: 'Sender number or name of the SMS',
    example: '+15557654321',
  }),
  BREVO_API_KEY: optional(secretText(), { section: 'alerts', about: 'Brevo key', example: 'from Brevo' }),
  HEARTBEAT_URL: optional(secretUrl('https', 'http'), {
    section: 'alerts',
    about:
      'URL fetched every minute while the overall status can be computed, so that an outside service notices a dead host',
    example: 'https://heartbeat.example.org/ping/1234',
  }),

  ...BACKUP_SETTINGS,
  ...PLACE_SETTINGS,
} as const;

export type SettingName = keyof typeof SETTINGS;

type Values = { readonly [K in SettingName]: (typeof SETTINGS)[K] extends Setting<infer T> ? T : never };

/** The effective settings, parsed and frozen. Unset ones without a default are undefined. */
export type Settings = Values;

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

/** True when `name` is a variable of this table. */
export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}
