// Checks rules that span several variables. A variable that is already invalid by itself is
// skipped.

import { isIpAddress } from '@holdfast/kit/addresses';
import { basesOf, basesOverlap, CORE_BASE } from '@holdfast/kit/directory';
import { ADMIN_ROLE_GROUP, PROVIDER_ADMINS } from '@holdfast/kit/names';
import { springOf } from '@holdfast/kit/quartz';
import { DEFAULT_SCHEDULE, maxDays } from '@holdfast/kit/retention';
import { backupRules } from './backup.ts';
import type { Problem } from './setting.ts';
import type { SettingName, Settings } from './table.ts';

/**
 * How the stack runs. Containers need an address and a mode; the embedded stack brings its own.
 * `light`: containers with the embedded core and identity provider.
 */
export type Mode = 'embedded' | 'container' | 'light';

const RETENTION_VARIABLES = ['COT_RETENTION_DAYS', 'GEOCHAT_RETENTION_DAYS', 'RETENTION_CRON'] as const;

/** Problems between variables; `alreadyBad` names those that failed by themselves. */
export function settingRules(settings: Settings, mode: Mode, alreadyBad: ReadonlySet<string>): Problem[] {
  const isSet = (name: SettingName): boolean => settings[name] !== undefined || alreadyBad.has(name);
  const problems = [
    ...retentionUnit(settings, mode),
    ...twoGroups(settings),
    ...groupsOfOthers(settings),
    ...twoBases(settings),
    ...needed(settings, mode),
    ...publicName(settings, mode),
    ...passwordOfRelease(settings, mode),
    ...waysForEmail(settings, isSet),
    ...waysForSms(settings, isSet),
    ...twoPorts(settings),
    ...backupRules(settings),
  ];
  return problems.filter((problem) => !alreadyBad.has(problem.name));
}

function retentionUnit(settings: Settings, mode: Mode): Problem[] {
  const unit = settings.CORE_RETENTION_UNIT;
  if (mode !== 'container' && unit === 'seconds') {
    return [
      problem(
        'CORE_RETENTION_UNIT',
        unit,
        'the embedded core counts days',
        'remove it, or set CORE_RETENTION_UNIT=days',
      ),
    ];
  }
  const used = RETENTION_VARIABLES.find((name) => settings[name] !== undefined);
  if (unit === undefined && used !== undefined) {
    return [
      problem(
        'CORE_RETENTION_UNIT',
        undefined,
        `must be set, because ${used} is: a core that counts seconds would read 30 days as 30 seconds and delete nearly everything`,
        'set CORE_RETENTION_UNIT=seconds for a TAK Server release, CORE_RETENTION_UNIT=days for the embedded core',
      ),
    ];
  }
  return unit === 'seconds' ? [...daysAsSeconds(settings), ...cronOfRelease(settings)] : [];
}

function daysAsSeconds(settings: Settings): Problem[] {
  const most = maxDays('seconds');
  return (['COT_RETENTION_DAYS', 'GEOCHAT_RETENTION_DAYS'] as const)
    .filter((name) => (settings[name] ?? 0) > most)
    .map((name) =>
      problem(
        name,
        String(settings[name]),
        `must be a whole number of days from 1 to ${most}, because the core counts seconds in 32 bits`,
        `set ${name}=${most} or less, or remove it to keep everything`,
      ),
    );
}

function cronOfRelease({ RETENTION_CRON: cron }: Settings): Problem[] {
  const fault = cron === undefined ? undefined : springOf(cron).fault;
  if (fault === undefined) return [];
  return [
    problem(
      'RETENTION_CRON',
      cron,
      `can't be given to the core: ${fault}`,
      `leave the year out, such as RETENTION_CRON=${DEFAULT_SCHEDULE}, or remove it`,
    ),
  ];
}

function twoPorts({ API_PORT: api, PORTAL_PORT: portal }: Settings): Problem[] {
  if (api === undefined || api !== portal) return [];
  return [
    problem(
      'PORTAL_PORT',
      String(portal),
      "is also the port of API_PORT; console and portal can't both listen there",
      'set PORTAL_PORT or API_PORT to another port that is free; without a value they are 3000 and 8080',
    ),
  ];
}

function twoGroups(settings: Settings): Problem[] {
  if (settings.ADMIN_GROUP === undefined || settings.VIEWER_GROUP === undefined) return [];
  if (settings.ADMIN_GROUP.toLowerCase() !== settings.VIEWER_GROUP.toLowerCase()) return [];
  return [
    problem(
      'VIEWER_GROUP',
      settings.VIEWER_GROUP,
      'is the same group as ADMIN_GROUP, so every viewer would be an administrator',
      'give the two different names',
    ),
  ];
}

/** Groups with rights of their own, which read-only people must not get. */
const ADMINISTRATING = [ADMIN_ROLE_GROUP, PROVIDER_ADMINS];

function groupsOfOthers({ ADMIN_GROUP: admins, VIEWER_GROUP: viewers }: Settings): Problem[] {
  const problems: Problem[] = [];
  const taken = ADMINISTRATING.find((name) => name.toLowerCase() === viewers?.toLowerCase());
  if (taken !== undefined) {
    const message = `is the group ${taken}, so every viewer would be an administrator`;
    problems.push(problem('VIEWER_GROUP', viewers, message, 'give viewers a group of their own'));
  }
  if (admins !== ADMIN_ROLE_GROUP && admins?.toLowerCase() === ADMIN_ROLE_GROUP.toLowerCase()) {
    const message = `is another spelling of ${ADMIN_ROLE_GROUP}, which the core would not recognize`;
    problems.push(
      problem('ADMIN_GROUP', admins, message, `write ADMIN_GROUP=${ADMIN_ROLE_GROUP}, or choose another name`),
    );
  }
  return problems;
}

function twoBases({ LDAP_BASE_DN: givenCore, LDAP_WEB_BASE_DN: given }: Settings): Problem[] {
  const { core, web } = basesOf(givenCore, given);
  if (!basesOverlap({ core, web })) return [];
  const why = 'an enrollment password would then open the API';
  if (given !== undefined) {
    const message = `overlaps LDAP_BASE_DN (${core}): ${why}`;
    return [
      problem(
        'LDAP_WEB_BASE_DN',
        given,
        message,
        `set it to a base beside the other, such as ${CORE_BASE.replace('core', 'web')}`,
      ),
    ];
  }
  const message = `leaves no name for a separate base for our own sign-in: ${why}`;
  return [problem('LDAP_BASE_DN', core, message, 'set LDAP_WEB_BASE_DN to a base that is apart from it')];
}

/** No CA issues a public certificate for anything else, and an IP address has no subdomains. */
function publicName({ SERVER_ADDRESS: name, DEPLOY_MODE: deployed }: Settings, mode: Mode): Problem[] {
  if (mode === 'embedded' || deployed !== 'subdomain' || name === undefined) return [];
  if (!isIpAddress(name) && name.includes('.')) return [];
  return [
    problem(
      'SERVER_ADDRESS',
      name,
      'is not a public name, which DEPLOY_MODE=subdomain needs for its certificates',
      'set SERVER_ADDRESS to a name such as cot.example.org, or choose direct mode: DEPLOY_MODE=direct',
    ),
  ];
}

/** Scripts of a release extract it from an XML file with a text search. */
function passwordOfRelease({ CORE_DB_PASSWORD: password }: Settings, mode: Mode): Problem[] {
  if (mode !== 'container' || password === undefined || !/[\s&<>"'\\]/.test(password.reveal())) return [];
  return [
    problem(
      'CORE_DB_PASSWORD',
      undefined,
      `contains a space or one of & < > " ' \\, which the scripts of a TAK Server release can't read`,
      'set it to letters, digits and other signs, and give the role martiuser the same: ALTER ROLE martiuser PASSWORD',
    ),
  ];
}

function needed(settings: Settings, mode: Mode): Problem[] {
  if (mode === 'embedded') return [];
  const missing: [SettingName, string][] = [
    ['SERVER_ADDRESS', 'set SERVER_ADDRESS to the name that phones use, such as cot.example.org'],
    ['DEPLOY_MODE', 'set DEPLOY_MODE=subdomain (public certificates) or DEPLOY_MODE=direct (own CA)'],
    ['DATABASE_URL', 'set DATABASE_URL to the database of Holdfast, as its owner'],
    [
      'AUDIT_KEY',
      'set AUDIT_KEY to what "openssl rand -hex 32" prints, and keep it: with another key no record is valid',
    ],
    ['SESSION_KEY', 'set SESSION_KEY to what "openssl rand -hex 32" prints: it signs session cookies and API tokens'],
  ];
  return missing
    .filter(([name]) => settings[name] === undefined)
    .map(([name, remedy]) => problem(name, undefined, 'must be set in the container stack', remedy));
}

/** The value as set, even an invalid one, which is reported by itself. */
type IsSet = (name: SettingName) => boolean;

function waysForEmail({ ALERT_EMAIL_TO: to }: Settings, isSet: IsSet): Problem[] {
  if (to === undefined) return [];
  if (!isSet('SMTP_URL') && !isSet('RESEND_API_KEY')) {
    return [
      problem(
        'ALERT_EMAIL_TO',
        to.join(','),
        'needs a way to send email, but neither SMTP_URL nor RESEND_API_KEY is set: no alert would arrive',
        'set SMTP_URL, such as smtp://user:password@mail.example.org:587, or RESEND_API_KEY; or remove ALERT_EMAIL_TO',
      ),
    ];
  }
  if (!isSet('RESEND_API_KEY') || isSet('ALERT_EMAIL_FROM')) return [];
  return [
    problem(
      'ALERT_EMAIL_FROM',
      undefined,
      'must be set, because Resend sends only from a domain that is verified there',
      'set ALERT_EMAIL_FROM to an address of a domain that is verified at Resend, such as holdfast@example.org',
    ),
  ];
}

const NEEDED_BY_PROVIDER = {
  twilio: ['TWILIO_ACCOUNT_SID', 'TWILIO_AUTH_TOKEN', 'TWILIO_FROM'],
  brevo: ['BREVO_API_KEY'],
} as const;

function waysForSms({ ALERT_SMS_TO: to, SMS_PROVIDER: provider }: Settings, isSet: IsSet): Problem[] {
  if (to === undefined) return [];
  if (!isSet('SMS_PROVIDER')) {
    const remedy = 'set SMS_PROVIDER=twilio or SMS_PROVIDER=brevo, or remove ALERT_SMS_TO';
    return [problem('SMS_PROVIDER', undefined, 'must be set, because ALERT_SMS_TO is: no alert would arrive', remedy)];
  }
  if (provider === undefined) return [];
  const because = `must be set, because ALERT_SMS_TO and SMS_PROVIDER=${provider} are`;
  return NEEDED_BY_PROVIDER[provider]
    .filter((name) => !isSet(name))
    .map((name) => problem(name, undefined, because, `set ${name} as ${provider} shows it, or remove ALERT_SMS_TO`));
}

function problem(name: SettingName, value: string | undefined, message: string, remedy: string): Problem {
  return { name, value, message, remedy };
}

const WANTED_LENGTH: Partial<Record<SettingName, number>> = {
  CORE_WEBADMIN_PASSWORD: 12,
  CORE_DB_PASSWORD: 12,
  APP_DB_PASSWORD: 12,
  LDAP_BIND_PASSWORD: 12,
  FLOWS_DB_PASSWORD: 12,
  FLOWS_PASSWORD: 12,
  VIDEO_PUBLISH_PASSWORD: 12,
  VIDEO_READ_PASSWORD: 12,
  NATS_PASSWORD: 12,
  IDENTITY_ADMIN_PASSWORD: 12,
  IDENTITY_BOOTSTRAP_TOKEN: 20,
  IDENTITY_TOKEN: 20,
  METRICS_TOKEN: 16,
  AUDIT_KEY: 32,
  SESSION_KEY: 32,
};

/**
 * Finds secrets that are accepted although they are shorter than recommended: a start warns about
 * them and continues. Each comes with the recommended length, never with the secret itself.
 */
export function shortSecrets(settings: Settings): { name: SettingName; length: number }[] {
  return Object.entries(WANTED_LENGTH).flatMap(([key, length]) => {
    const name = key as SettingName;
    const value = settings[name];
    const short = typeof value === 'object' && 'reveal' in value && value.reveal().length < length;
    return short ? [{ name, length }] : [];
  });
}

/** One sentence for each of them. */
export function weakSecrets(settings: Settings): string[] {
  return shortSecrets(settings).map(({ name, length }) => `${name} is short; use at least ${length} characters`);
}

/**
 * Default passwords of programs and manuals in this field that are as long as a password must be,
 * in lower case.
 */
export const PUBLISHED = new Set([
  'atakatakatak',
  'atakatakatakatak',
  'changemechangeme',
  'changeme1234',
  'administrator',
  'letmein12345',
  'password1234',
  'password12345',
  'password123456',
  'passwordpassword',
  'passw0rd1234',
  'p@ssw0rd1234',
  'qwertyuiop12',
  'takserverpassword',
  'takserver1234',
  'tak-server-password',
  'atakatak1234',
  'atakatak!1234',
  'pass4marti12',
  'pass4marti1234',
  'pass4martipass4marti',
  'adminadminadmin',
  '123456789012',
  '1234567890123',
  'correct horse battery staple',
  'correcthorsebatterystaple',
]);
/**
 * Words from manuals that are easily lengthened: a password that only repeats one is refused as
 * well.
 */
export const PUBLISHED_WORDS = ['atakatak', 'atak', 'takserver', 'pass4marti', 'password', 'changeme', 'admin'];

/**
 * True for passwords that manuals and programs of this field publish, and for repetitions of such
 * words.
 */
export function isPublishedPassword(password: string): boolean {
  const lower = password.toLowerCase();
  return PUBLISHED.has(lower) || PUBLISHED_WORDS.some((word) => lower.replaceAll(word, '') === '');
}
