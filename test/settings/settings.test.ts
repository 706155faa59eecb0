import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderEnvTemplate, renderSettingsTable } from '../../shared/settings/documents.ts';
import { loadSettings, parseEnvFile, unknownNames } from '../../shared/settings/load.ts';
import { type Mode, weakSecrets } from '../../shared/settings/rules.ts';
import { describeProblem, type Setting } from '../../shared/settings/setting.ts';
import { SETTING_NAMES, SETTINGS } from '../../shared/settings/table.ts';
import { NO_SENDERS, SENDERS } from '../alerts/fake-senders.ts';

const root = resolve(import.meta.dirname, '../..');
const ENOUGH = {
  SERVER_ADDRESS: 'cot.example.org',
  DEPLOY_MODE: 'direct',
  DATABASE_URL: 'postgres://h:p@db/holdfast',
  AUDIT_KEY: '0f'.repeat(32),
  SESSION_KEY: 'f0'.repeat(32),
};
const A_WAY_TO_SEND = { SMTP_URL: 'smtp://mail.example.org', SMS_PROVIDER: 'brevo', BREVO_API_KEY: 'from-brevo' };

const SAFE_URLS = [
  'https://api.example.org',
  'https://api.example.org/eu/',
  'http://127.0.0.1:8025',
  'http://127.8.9.1/',
  'http://[::1]:8025',
  'http://LocalHost:8025',
];
const UNSAFE_URLS = [
  'http://api.example.org',
  'http://10.0.0.1',
  'http://[::ffff:127.0.0.1]',
  'http://localhost.example.org',
  'http://127.example.org',
  'https://u:p@api.example.org',
  'https://api.example.org/?a',
  'https://api.example.org/#a',
  'api.example.org',
];

function load(values: Record<string, string>, mode: Mode = 'embedded') {
  return loadSettings([{ source: 'environment', values }], mode);
}

function problemsOf(values: Record<string, string>, mode: Mode = 'embedded'): string[] {
  return load(values, mode).problems.map((problem) => problem.name);
}

describe('settings', () => {
  it('have the defaults of the specification and delete nothing when nothing is set', () => {
    const { settings, problems } = load({});
    expect(problems).toEqual([]);
    expect(settings.COT_RETENTION_DAYS).toBeUndefined();
    expect(settings.GEOCHAT_RETENTION_DAYS).toBeUndefined();
    expect(settings.RETENTION_CRON).toBeUndefined();
    expect([
      settings.DB_AUTOVACUUM_SCALE_FACTOR,
      settings.DB_AUTOVACUUM_COST_LIMIT,
      settings.DB_MAINTENANCE_WORK_MEM,
    ]).toEqual([0.05, 1000, '256MB']);
    expect([settings.ENROLLMENT_TTL_MINUTES, settings.CORE_ENROLLMENT_PORT]).toEqual([15, 8446]);
    expect(settings.USERS_HIDDEN_PREFIXES).toEqual(['svc_', 'adm_', 'ak-outpost-', 'akadmin']);
  });

  it('take an empty or blank value as unset, and go on to the next layer', () => {
    const layers = [
      { source: 'environment', values: { COT_RETENTION_DAYS: '  ', DB_AUTOVACUUM_COST_LIMIT: '' } },
      { source: 'env file', values: { COT_RETENTION_DAYS: '30' } },
    ] as const;
    const { settings, sources } = loadSettings(
      [...layers, { source: 'stack', values: { CORE_RETENTION_UNIT: 'days' } }],
      'embedded',
    );
    expect([settings.COT_RETENTION_DAYS, sources.COT_RETENTION_DAYS]).toEqual([30, 'env file']);
    expect([settings.DB_AUTOVACUUM_COST_LIMIT, sources.DB_AUTOVACUUM_COST_LIMIT]).toEqual([1000, 'default']);
    expect(sources.SMTP_URL).toBe('unset');
  });

  it('lets the environment win over the env file', () => {
    const layers = [
      { source: 'environment', values: { DB_AUTOVACUUM_COST_LIMIT: '300' } },
      { source: 'env file', values: { DB_AUTOVACUUM_COST_LIMIT: '400' } },
    ] as const;
    expect(loadSettings(layers, 'embedded').settings.DB_AUTOVACUUM_COST_LIMIT).toBe(300);
  });

  it.each(['abc', '0', '-1', '1.5', '99999', '1e2', '+5', '30 days', '٣', '0x10'])(
    'refuse COT_RETENTION_DAYS=%s with variable, value and remedy',
    (value) => {
      const [problem, ...others] = load({ COT_RETENTION_DAYS: value, CORE_RETENTION_UNIT: 'days' }).problems;
      expect(others).toEqual([]);
      if (problem === undefined) throw new Error('no problem was found');
      const text = describeProblem(problem);
      expect(text).toContain(`COT_RETENTION_DAYS=${value}`);
      expect(text).toContain('from 1 to 36500');
      expect(text).toContain('Remedy: ');
    },
  );

  it.each([
    '0 0 3 * * ?',
    '0 0 3 ? * SUN',
    '0 30 2 1 * ? 2099',
    '0 0/5 * ? * 1-7',
    '0 0 3 ? * 6L',
    '0 0 3 ? * 2#1',
    '0 0 3 L * ?',
    '0 0 3 15W * ?',
    '0 0 3 ? * L',
    '0 0 3 ? * fri-mon',
    '0 0 22-4 * * ?',
    '0 0/30 8-10 ? JAN,MAR MON-FRI',
  ])('accept the Quartz schedule %s', (value) =>
    expect(problemsOf({ RETENTION_CRON: value, CORE_RETENTION_UNIT: 'days' })).toEqual([]),
  );

  it.each([
    ['0 3 * * ?', 'it has 5 fields'],
    ['0 0 3 * * *', 'must be ?'],
    ['0 0 3 ? * ?', 'must be ?'],
    ['0 ? 3 * * ?', 'must be ?'],
    ['0 0 3 * ? ?', 'must be ?'],
    ['0 0 25 * * ?', '"25" is no hour'],
    ['60 0 3 * * ?', '"60" is no second'],
    ['0 0 3 ? * 0', '"0" is no day-of-week'],
    ['0 0 3 ? * 8', '"8" is no day-of-week'],
    ['0 0 3 L-3 * ?', '"L-3" is no day-of-month of Quartz that Holdfast can run'],
    ['0 0/0 3 * * ?', '"0/0" is no minute'],
    ['0 0 3 1 1 ? 2020', 'it never fires again'],
    ['0 0 3 31 2 ?', 'it never fires again'],
    ['-', 'it has 1 fields'],
    ['@daily', 'it has 1 fields'],
  ])('refuse the schedule %s and say why', (value, reason) => {
    const { problems } = load({ RETENTION_CRON: value, CORE_RETENTION_UNIT: 'days' });
    expect(problems.map(({ name }) => name)).toEqual(['RETENTION_CRON']);
    expect(problems[0]?.message).toContain(reason);
  });

  it.each(['COT_RETENTION_DAYS', 'GEOCHAT_RETENTION_DAYS', 'RETENTION_CRON'])(
    'demand a unit in the container stack once %s is set',
    (name) => {
      const value = name === 'RETENTION_CRON' ? '0 0 3 * * ?' : '30';
      expect(problemsOf({ ...ENOUGH, [name]: value }, 'container')).toEqual(['CORE_RETENTION_UNIT']);
      expect(problemsOf({ ...ENOUGH, [name]: value, CORE_RETENTION_UNIT: 'seconds' }, 'container')).toEqual([]);
    },
  );

  it('refuse seconds in the embedded stack, and days whose seconds do not fit the core', () => {
    expect(problemsOf({ CORE_RETENTION_UNIT: 'seconds' })).toEqual(['CORE_RETENTION_UNIT']);
    const values = {
      ...ENOUGH,
      CORE_RETENTION_UNIT: 'seconds',
      COT_RETENTION_DAYS: '24856',
      GEOCHAT_RETENTION_DAYS: '24855',
    };
    expect(problemsOf(values, 'container')).toEqual(['COT_RETENTION_DAYS']);
  });

  it('list every problem at once', () => {
    const values = {
      COT_RETENTION_DAYS: 'abc',
      DB_AUTOVACUUM_COST_LIMIT: '0',
      DB_AUTOVACUUM_SCALE_FACTOR: '2',
      DEPLOY_MODE: 'cloud',
      SMTP_URL: 'mail',
    };
    expect(problemsOf(values).toSorted()).toEqual([
      'COT_RETENTION_DAYS',
      'DB_AUTOVACUUM_COST_LIMIT',
      'DB_AUTOVACUUM_SCALE_FACTOR',
      'DEPLOY_MODE',
      'SMTP_URL',
    ]);
    expect(problemsOf({}, 'container').toSorted()).toEqual([
      'AUDIT_KEY',
      'DATABASE_URL',
      'DEPLOY_MODE',
      'SERVER_ADDRESS',
      'SESSION_KEY',
    ]);
  });

  it('demand the two keys in the container stack, and say how to make them; the embedded stack makes its own', () => {
    expect(problemsOf(ENOUGH, 'container')).toEqual([]);
    for (const name of ['AUDIT_KEY', 'SESSION_KEY']) {
      const { problems } = load({ ...ENOUGH, [name]: '' }, 'container');
      expect(problems.map(describeProblem)).toEqual([
        expect.stringMatching(`${name}.*must be set[^]*openssl rand -hex`),
      ]);
      expect(problemsOf({ ...ENOUGH, [name]: '' }, 'embedded')).toEqual([]);
    }
  });

  it('never echo the value of a secret', () => {
    const bad: Record<string, string> = {};
    for (const name of SETTING_NAMES) if (SETTINGS[name].kind.secret) bad[name] = 'tell\u0001nobody';
    const { problems } = load(bad);
    expect(problems.length).toBe(Object.keys(bad).length);
    expect(problems.map(describeProblem).join('\n')).not.toContain('nobody');
  });

  it('never let a value break the lines of a message', () => {
    const text = load({ DEPLOY_MODE: 'a\nb\u001b[31m' }).problems.map(describeProblem).join('');
    expect(text).toContain('DEPLOY_MODE=a?b?[31m');
  });

  it.each(
    Object.entries({
      DB_AUTOVACUUM_SCALE_FACTOR: [
        ['0', '1', '0.2', '.05'],
        ['1.01', '-0.1', 'five', '5%', '1e-3'],
      ],
      DB_AUTOVACUUM_COST_LIMIT: [
        ['1', '200', '10000'],
        ['0', '10001', '1.5'],
      ],
      DB_MAINTENANCE_WORK_MEM: [
        ['1MB', '64MB', '1GB', '1024'],
        ['1kB', '1023', '64mb', '-1', '99999GB'],
      ],
      SERVER_ADDRESS: [
        ['cot.example.org', '192.0.2.1', '::1'],
        ['https://x', 'a b', 'x:80'],
      ],
      DEPLOY_MODE: [
        ['direct', 'subdomain'],
        ['Direct', 'both'],
      ],
      ALERT_EMAIL_TO: [
        ['a@b.org', 'a@b.org, c@d.org'],
        ['a', 'a@b.org,x', 'a@b org'],
      ],
      ALERT_EMAIL_FROM: [SENDERS, [...NO_SENDERS, 'a', '<>', 'x <y>']],
      ...Object.fromEntries(['RESEND_URL', 'TWILIO_URL', 'BREVO_URL'].map((name) => [name, [SAFE_URLS, UNSAFE_URLS]])),
      ALERT_SMS_TO: [['+15551234567'], ['5551234567', '+1-555', '+0']],
      TRUSTED_PROXIES: [
        ['10.0.0.1', '10.0.0.0/8, fd00::/64'],
        ['proxy', '10.0.0.1/33', '10.0.0.0/8/9'],
      ],
      METRICS_TOKEN: [
        ['0123456789abcdef', 'short'],
        ['with blank in the text', 'ümlaut-0123456789'],
      ],
      LISTEN_ADDRESS: [
        ['0.0.0.0', '::', '127.0.0.1', 'management'],
        ['http://0.0.0.0', '0.0.0.0:8080'],
      ],
      LDAP_URL: [
        ['ldap://h:389', 'ldaps://h'],
        ['http://h', 'h'],
      ],
      CORE_STREAMING_URL: [
        ['tls://h:8089', 'tls://h:8089, tls://i'],
        ['https://h', 'h:8089', 'tls://h,', 'tls://h,https://i'],
      ],
      CONTAINER_RUNTIME_URL: [
        ['unix:///run/docker.sock', 'tcp://127.0.0.1:2375'],
        ['docker', 'unix://'],
      ],
      LDAP_BASE_DN: [
        ['DC=core,DC=holdfast', 'dc=example, dc=org', '0.9.2342=org', 'cn=a+uid=b', 'o=a\\,b\\=c'],
        ['core', 'dc=x,', '=x', 'dc=', 'dc=a;b'],
      ],
      CORE_DATA_DIR: [['/opt/tak'], ['opt/tak']],
      KEEP_CLIENT_KEYS: [
        ['true', 'false'],
        ['yes', '1'],
      ],
      CORE_RELEASE: [
        ['5.7-RELEASE-8', '5.5-RELEASE-58-HEAD', 'hardened-5.7-RELEASE-8'],
        ['../5.7', '5.7 RELEASE', '.5', 'x/y'],
      ],
      CORE_MEMORY: [
        ['1g', '4g', '6144m', '1024m'],
        ['1023m', '4', '4G', '4gb', '0g', '1.5g', '-4g'],
      ],
      CORE_DATABASE_MEMORY: [
        ['512m', '1g'],
        ['511m', 'much'],
      ],
      CERTIFICATE_COUNTRY: [['AT'], ['at', 'AUT', 'A1']],
      CERTIFICATE_ORGANIZATION: [
        ['Fire District 7', 'x'.repeat(64)],
        ['a/b', 'a,b', 'a=b', '"a"', 'é', ' x'.repeat(33)],
      ],
      FLOWS_TOKEN: [['t'.repeat(32)], ['t'.repeat(31), `${'t'.repeat(32)} `.repeat(2)]],
      VIDEO_READ_PASSWORD: [['a.b_c-9'], ['a b', 'a:b', 'a@b', 'a%20b']],
      USERS_HIDDEN_PREFIXES: [
        ['svc_', 'a_,b_'],
        ['a b', ','],
      ],
      ADMIN_GROUP: [
        ['stack_admin', 'Duty Officers'],
        ['a,b', ' x'.repeat(40)],
      ],
    }).flatMap(([name, [good, bad]]) => [
      ...(good ?? []).map((value) => [name, value, true] as const),
      ...(bad ?? []).map((value) => [name, value, false] as const),
    ]),
  )('%s=%s is good: %s', (name, value, good) =>
    expect(problemsOf({ ...A_WAY_TO_SEND, [name]: value })).toEqual(good ? [] : [name]),
  );

  it.each([
    [{ API_PORT: '3000' }, '3000'],
    [{ PORTAL_PORT: '8080' }, '8080'],
    [{ API_PORT: '9000', PORTAL_PORT: '9000' }, '9000'],
  ])('refuse one port for console and portal: %j', (values, port) => {
    const { problems } = load(values);
    expect(problems).toMatchObject([{ name: 'PORTAL_PORT', value: port }]);
    expect(problems.map(describeProblem).join('')).toMatch(/API_PORT.*set PORTAL_PORT or API_PORT/s);
  });

  it('refuse one group for readers and administrators', () => {
    expect(problemsOf({ ADMIN_GROUP: 'Team', VIEWER_GROUP: 'team' })).toEqual(['VIEWER_GROUP']);
  });

  it('keep readers out of groups that administer, and the web-admin group in its one spelling', () => {
    expect(problemsOf({ VIEWER_GROUP: 'Core_role_admin' })).toEqual(['VIEWER_GROUP']);
    expect(problemsOf({ VIEWER_GROUP: 'authentik Admins' })).toEqual(['VIEWER_GROUP']);
    expect(problemsOf({ ADMIN_GROUP: 'CORE_role_admin' })).toEqual(['ADMIN_GROUP']);
    expect(problemsOf({ ADMIN_GROUP: 'core_ROLE_ADMIN' })).toEqual([]);
  });

  it('refuse what no provider takes: a token with blanks, a password of more than 1024 bytes', () => {
    for (const token of ['two words', ' token', 'clé', 'x'.repeat(1025)])
      expect(problemsOf({ IDENTITY_TOKEN: token })).toEqual(['IDENTITY_TOKEN']);
    for (const name of ['CORE_WEBADMIN_PASSWORD', 'LDAP_BIND_PASSWORD']) {
      expect(problemsOf({ [name]: 'é'.repeat(513) })).toEqual([name]);
      expect(problemsOf({ [name]: ` ${'é'.repeat(511)} ` })).toEqual([]);
    }
  });

  it('have an example that is itself good, wherever one is shown', () => {
    const shown = SETTING_NAMES.filter(
      (name) => !/generated|from |^re_|long random|\.\.\.$/.test(SETTINGS[name].example),
    );
    const bad = shown.filter(
      (name) => !(SETTINGS[name] as Setting).kind.schema.safeParse(SETTINGS[name].example).success,
    );
    expect(bad).toEqual([]);
  });
});

describe('weak secrets', () => {
  it('are accepted and said by name, never by value; long enough ones are not', () => {
    const { settings } = load({
      IDENTITY_TOKEN: 'short',
      METRICS_TOKEN: 'short',
      CORE_WEBADMIN_PASSWORD: 'long enough by far',
      AUDIT_KEY: 'k'.repeat(31),
    });
    const messages = weakSecrets(settings);
    expect(messages.map((text) => text.split(' ')[0])).toEqual(['IDENTITY_TOKEN', 'METRICS_TOKEN', 'AUDIT_KEY']);
    expect(messages.join()).not.toContain('kkk');
  });
});

describe('the documents', () => {
  it('.env.template is what the settings table renders', () => {
    expect(readFileSync(resolve(root, '.env.template'), 'utf8')).toBe(renderEnvTemplate());
  });

  it('docs/settings.md holds the rendered table', () => {
    expect(readFileSync(resolve(root, 'docs/settings.md'), 'utf8')).toContain(renderSettingsTable());
  });

  it('.env.template itself is a valid env file that changes nothing', () => {
    const { values, problems } = parseEnvFile(renderEnvTemplate());
    expect(problems).toEqual([]);
    expect(load(values).settings).toEqual(load({}).settings);
  });
});

describe('an env file', () => {
  it('reads plain, quoted and commented values', () => {
    const text = `\uFEFF# comment\n\nA=1\n export B = two words # note\nC='lit#eral $x'\nD="a\\tb \\"q\\" \\$" # c\nE=\nF=x#y\nA=2\r\n`;
    expect(parseEnvFile(text)).toEqual({
      values: { A: '2', B: 'two words', C: 'lit#eral $x', D: 'a\tb "q" $', E: '', F: 'x#y' },
      problems: [],
    });
  });

  it('names the lines that it cannot read', () => {
    expect(parseEnvFile('A=1\nnonsense\nB="open\n1X=2\nC=\'a').problems.map(({ line }) => line)).toEqual([2, 3, 4, 5]);
  });

  it('says which names nothing reads, and what was probably meant', () => {
    expect(unknownNames(['COT_RETENTON_DAYS', 'SMTP_URL', 'MON_ALERT_COOLDOWN', 'FOO'])).toEqual([
      { name: 'COT_RETENTON_DAYS', meant: 'COT_RETENTION_DAYS' },
      { name: 'FOO', meant: undefined },
    ]);
  });
});
