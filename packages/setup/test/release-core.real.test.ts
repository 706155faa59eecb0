// The programs of a release in their container: which are expected, that none may go, how they end,
// and what they are given.

import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { identify, processesOf } from '@holdfast/stack/process/ownership';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { programsIn, ReleaseCore, type ReleaseCoreOptions } from '../release-core/core.ts';
import { readCoordinates } from '../release-core/program.ts';
import { type Awaited, follow, linesOf, noteFailedStart, pauseBeforeStart, phaseIn } from '../release-core/start.ts';
import { RELEASE_PROGRAMS, releasePrograms, type ReleasePrograms } from './release-programs.ts';

/** For a program: only then do the others count as started. */
// A number that is still being written would never come once the others are ended.
const EXIT_ONCE_ALL_ARE_THERE = `const { statSync } = process.getBuiltinModule('node:fs');
const isThere = (each) => statSync(process.env.RELEASE_HOME + '/' + each + '.pid', { throwIfNoEntry: false })?.size > 0;
setInterval(() => ${JSON.stringify(RELEASE_PROGRAMS)}.every(isThere) && process.exit(3), 50)`;
let release: ReleasePrograms;
let log: ReturnType<typeof memoryLog>;
let core: ReleaseCore;
let running: Promise<number> | undefined;

afterEach(async () => {
  core?.stop();
  await running?.catch(() => undefined);
  running = undefined;
  release?.remove();
});

function start(options: Partial<ReleaseCoreOptions> = {}, made = releasePrograms()): Promise<number> {
  release = made;
  log = memoryLog();
  core = new ReleaseCore({
    home: release.home,
    environment: release.environment,
    awaited: [],
    log,
    lookEveryMs: 20,
    appearWithinMs: 30_000,
    endWithinMs: 5_000,
    ...options,
  });
  running = core.run();
  return running;
}

/** However busy the machine is. */
const poll = <T>(read: () => T) => expect.poll(read, { timeout: 30_000, interval: 25 });
const events = (event: string) => log.events.filter((each) => each.event === event).map(({ fields }) => fields);
const hasBegun = (name: string): boolean => readdirSync(release.home).includes(`${name}.pid`) && release.pid(name) > 0;
const begun = () => poll(() => RELEASE_PROGRAMS.every(hasBegun)).toBe(true);
/** What lives of this release, by the directory in its environment. */
const alive = (): string[] =>
  RELEASE_PROGRAMS.filter((name) => hasBegun(name) && identify(release.pid(name)) !== undefined);

describe('the programs of a release', () => {
  it('live until the stop, and then all end: the container was asked to', { timeout: 60_000 }, async () => {
    const code = start();
    await begun();
    expect(alive()).toEqual(RELEASE_PROGRAMS);
    core.stop();
    expect(await code).toBe(0);
    expect(alive()).toEqual([]);
    expect(events('core.program_ended')).toEqual([]);
  });

  it.each([
    ['that ends by itself', 'api', undefined],
    ['that the kernel kills', 'messaging', 'SIGKILL'],
    ['that is the smallest of them', 'plugins', 'SIGTERM'],
  ] as const)(
    'end with the one %s, which the log names: exit code 1',
    { timeout: 60_000 },
    async (_, program, signal) => {
      const made = releasePrograms();
      if (signal === undefined) made.does(program, EXIT_ONCE_ALL_ARE_THERE);
      const code = start({}, made);
      await begun();
      if (signal !== undefined) process.kill(release.pid(program), signal);
      expect(await code).toBe(1);
      expect(alive()).toEqual([]);
      expect(events('core.program_ended')).toEqual([
        {
          program,
          reason: 'it has ended',
          out_of_memory: false,
          remedy: expect.stringContaining('takserver.log') as unknown,
        },
      ]);
    },
  );

  it('end when one of them never comes', { timeout: 60_000 }, async () => {
    const code = start({ appearWithinMs: 2_000 }, releasePrograms({ without: ['retention'] }));
    expect(await code).toBe(1);
    expect(events('core.program_ended')).toMatchObject([
      { program: 'retention', reason: 'it did not start within 2 s' },
    ]);
    expect(alive()).toEqual([]);
  });

  it.each([
    ['exit 0', 'it exited with code 0'],
    ['kill -9 $$', 'it exited by signal SIGKILL'],
  ])('end when their script does (%s), whatever it says', { timeout: 60_000 }, async (last, reason) => {
    // Not before the programs are there: they must not outlive it.
    const wait = `until [ -e plugins.pid ] && [ -e api.pid ]; do sleep 0.05; done`;
    const code = start({}, releasePrograms({ after: `${wait}\n${last}` }));
    expect(await code).toBe(1);
    expect(events('core.program_ended')).toMatchObject([{ program: 'configureInDocker.sh', reason }]);
    expect(alive()).toEqual([]);
  });

  it('are killed when they do not end in time', { timeout: 60_000 }, async () => {
    const made = releasePrograms();
    made.does('messaging', "process.on('SIGTERM', () => undefined); process.stdout.write('deaf\\n')");
    const code = start({ endWithinMs: 500 }, made);
    await begun();
    await poll(() => release.log()).toContain('deaf');
    core.stop();
    expect(await code).toBe(0);
    expect(alive()).toEqual([]);
  });

  it('leave nothing behind when the stop comes while they start', { timeout: 60_000 }, async () => {
    const code = start({}, releasePrograms({ before: 'echo $$ >script.pid; echo begun; sleep 0.3' }));
    await poll(() => release.log()).toContain('begun');
    core.stop();
    expect(await code).toBe(0);
    expect(identify(Number(readFileSync(join(release.home, 'script.pid'), 'utf8')))).toBeUndefined();
    expect(alive()).toEqual([]);
  });

  it('are given their environment, and their output is kept', { timeout: 60_000 }, async () => {
    const made = releasePrograms();
    made.does('api', "console.log('to the output'); console.error('to the errors')");
    const code = start({ environment: { ...made.environment, API_MAX_HEAP: '901', CAPASS: 'atakatak' } }, made);
    await begun();
    await poll(() => release.log()).toContain('to the errors');
    expect(release.log()).toContain('to the output');
    expect(release.environmentOf('api')).toMatchObject({ API_MAX_HEAP: '901', CAPASS: 'atakatak' });
    core.stop();
    await code;
  });
});

describe('a start that hangs', () => {
  const ready = ['config', 'messaging', 'api']
    .map((name) => `console.log('Started TAK Server ${name} Microservice');`)
    .concat("console.log('NioServer - Server started')")
    .join('\n');

  it('ends with what is missing, and each further one waits longer', { timeout: 60_000 }, async () => {
    const made = releasePrograms();
    made.does('config', "console.log('Started TAK Server config Microservice')");
    expect(await start({ phaseWithinMs: 1_500 }, made)).toBe(1);
    expect(events('core.program_ended')).toMatchObject([
      { program: 'core', reason: 'no progress for 1.5 s. Still missing: messaging, streaming, api' },
    ]);
    expect(alive()).toEqual([]);
    expect(pauseBeforeStart(made.home)).toEqual({ failed: 1, pauseMs: 5_000 });
    for (let failed = 1; failed < 9; failed++) noteFailedStart(made.home);
    expect(pauseBeforeStart(made.home)).toEqual({ failed: 9, pauseMs: 60_000 });
    running = undefined;
    const code = start({}, made);
    expect(events('core.pause')).toEqual([{ seconds: 60, failed_starts: 9 }]);
    core.stop();
    expect(await code).toBe(0);
    expect(events('core.phase')).toEqual([]);
  });

  it('is forgotten when one comes through', { timeout: 60_000 }, async () => {
    const made = releasePrograms();
    made.does('config', ready);
    noteFailedStart(made.home);
    writeFileSync(join(made.home, '.holdfast-failed-starts'), 'not a number');
    const code = start({ phaseWithinMs: 10_000 }, made);
    await poll(() => events('core.ready')).toHaveLength(1);
    expect(pauseBeforeStart(made.home)).toEqual({ failed: 0, pauseMs: 0 });
    core.stop();
    await code;
  });

  it(
    'ends when a program says that its Spring context failed: its threads would keep it alive',
    { timeout: 60_000 },
    async () => {
      const made = releasePrograms();
      made.does('config', ready);
      const code = start({}, made);
      await poll(() => events('core.ready')).toHaveLength(1);
      appendFileSync(
        join(made.home, 'logs/takserver-plugins.log'),
        'x ERROR o.s.boot.SpringApplication - Application run failed\n',
      );
      expect(await code).toBe(1);
      expect(events('core.program_ended')).toMatchObject([
        { program: 'plugins', reason: expect.stringContaining('Application run failed') },
      ]);
      expect(pauseBeforeStart(made.home).failed).toBe(0);
    },
  );
});

describe('what a start says of itself', () => {
  it(
    'is each ready line once, from the output or from the log of a program; then that the core is ready',
    { timeout: 60_000 },
    async () => {
      const made = releasePrograms();
      mkdirSync(join(made.home, 'logs'));
      // Of an earlier start: it counts no more.
      writeFileSync(join(made.home, 'logs/takserver-api.log'), 'Started TAK Server api Microservice in 1 seconds\n');
      made.does('config', "console.log('x Started TAK Server config Microservice in 3 seconds')");
      const reached: string[] = [];
      const code = start({ reached: (phase) => reached.push(phase) }, made);
      await poll(() => reached).toEqual(['config']);
      const line = (name: string, text: string): void =>
        appendFileSync(join(made.home, `logs/takserver-${name}.log`), `2026-01-31 INFO ${text}\n`);
      line('messaging', 'Started TAK Server messaging Microservice');
      line('messaging', 'c.b.m.n.NioServer - Server started');
      line('messaging', 'c.b.m.n.NioServer - Server started');
      await poll(() => reached).toEqual(['config', 'messaging', 'streaming']);
      expect(events('core.ready')).toEqual([]);
      line('api', 'Started TAK Server api Microservice');
      await poll(() => events('core.ready')).toHaveLength(1);
      expect(events('core.phase').map(({ phase }) => phase)).toEqual([
        'starting',
        'config',
        'messaging',
        'streaming',
        'api',
      ]);
      core.stop();
      await code;
    },
  );

  it('is what it waits for, until that is there; nothing is started before', { timeout: 60_000 }, async () => {
    let isThere = false;
    const awaited: Awaited[] = [
      { name: 'database', check: async () => undefined },
      {
        name: 'directory',
        check: async () => {
          if (!isThere) throw new Error('the directory authentik-ldap:3389 refuses the connection');
        },
      },
    ];
    const code = start({ awaited, sayEveryMs: 50 });
    await poll(() => events('core.waits')).toContainEqual({
      for: 'directory',
      reason: 'the directory authentik-ldap:3389 refuses the connection',
    });
    expect(events('core.found')).toEqual([{ what: 'database' }]);
    expect(readdirSync(release.home)).not.toContain('config.env');
    isThere = true;
    await begun();
    core.stop();
    expect(await code).toBe(0);
  });

  it('is nothing more when the stop comes while it waits', async () => {
    const never: Awaited = { name: 'database', check: async () => Promise.reject(new Error('not there')) };
    const code = start({ awaited: [never] });
    core.stop();
    expect(await code).toBe(0);
    expect(readdirSync(release.home)).not.toContain('logs');
  });
});

describe('which programs a release has', () => {
  it('is read in its script, old or new', () => {
    const newer = `#!/bin/sh
# java -Dspring.profiles.active=comment takserver.war
. ./setenv.sh
java -jar -Xmx\${CONFIG_MAX_HEAP}m -Dspring.profiles.active=config takserver.war &
  java -jar -Xmx\${API_MAX_HEAP}m -Dspring.profiles.active="api" -Dkeystore.pkcs12.legacy takserver.war &
/usr/bin/java -jar -Xmx\${RETENTION_MAX_HEAP}m takserver-retention.jar &
java -jar -Dloader.path=WEB-INF/lib,file:lib/ takserver-pm.jar &
`;
    expect(programsIn(newer)).toEqual(['config', 'api', 'retention', 'plugins']);
    expect(programsIn('java -jar -Dspring.profiles.active=messaging takserver.war &\n')).toEqual(['messaging']);
  });

  it('must be found, or nobody would notice that one is gone', async () => {
    const made = releasePrograms();
    writeFileSync(join(made.home, 'configureInDocker.sh'), './start-everything.sh\n');
    await expect(start({}, made)).rejects.toThrow(/starts no program that Holdfast knows/);
  });

  it('finds every process of a session, whoever its parent is', () => {
    const pids = (session: number): number[] => processesOf(session).map(({ pid }) => pid);
    expect(pids(sessionOfThis())).toContain(process.pid);
    const shell = spawnSync('setsid', ['--wait', 'sh', '-c', 'sleep 60 >/dev/null 2>&1 & echo $$ $!'], {
      encoding: 'utf8',
    });
    const [session = 0, orphan = 0] = shell.stdout.split(' ').map(Number);
    try {
      expect(pids(session)).toEqual([orphan]);
    } finally {
      process.kill(orphan, 'SIGKILL');
    }
  });
});

function sessionOfThis(): number {
  const stat = process.getBuiltinModule('node:fs').readFileSync('/proc/self/stat', 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
}

describe('CoreConfig.xml', () => {
  const write = (text: string, place = 'CoreConfig.xml'): string => {
    release = releasePrograms();
    mkdirSync(join(release.home, 'conf'));
    writeFileSync(join(release.home, place), text);
    return release.home;
  };
  const config = (rest: string): string =>
    `<?xml version="1.0"?><Configuration xmlns="http://bbn.com/marti/xml/config"><repository>
     <connection url="jdbc:postgresql://core-database:5432/cot?ssl=false" username="martiuser" password="a&amp;b/c@d"/>
     </repository>${rest}</Configuration>`;

  it('says where the database and the directory are, and as whom', () => {
    const ldap = `<auth><ldap url="ldap://authentik-ldap:3389" serviceAccountDN="cn=adm_ldapservice,ou=users,DC=core,DC=holdfast" serviceAccountCredential="pass&quot;word"/></auth>`;
    const { databaseUrl, directory } = readCoordinates(write(config(ldap)));
    expect(databaseUrl.reveal()).toBe('postgres://martiuser:a%26b%2Fc%40d@core-database:5432/cot');
    expect(directory).toMatchObject({
      url: 'ldap://authentik-ldap:3389',
      dn: 'cn=adm_ldapservice,ou=users,DC=core,DC=holdfast',
    });
    expect(directory?.password.reveal()).toBe('pass"word');
  });

  it('is taken from conf/ first, as a release does; without a directory none is waited for', () => {
    const home = write('<broken', 'CoreConfig.xml');
    writeFileSync(join(home, 'conf/CoreConfig.xml'), config(''));
    expect(readCoordinates(home).directory).toBeUndefined();
  });

  it.each([
    ['<Configuration', /Couldn't read .*CoreConfig\.xml/],
    ['<Configuration/>', /has no PostgreSQL database/],
  ])('is refused as %s, by its name', (text, reported) => {
    expect(() => readCoordinates(write(text))).toThrow(reported);
  });

  it('that is missing is refused with who writes it', () => {
    release = releasePrograms();
    expect(() => readCoordinates(release.home)).toThrow(/CoreConfig\.xml is missing/);
  });
});

describe('output', () => {
  it('is cut into lines wherever it is cut into pieces', () => {
    const lines: string[] = [];
    const take = linesOf((line) => lines.push(line));
    for (const piece of ['one\ntw', 'o', '\n', 'three']) take(Buffer.from(piece));
    expect(lines).toEqual(['one', 'two']);
    expect(phaseIn('12:00 INFO  Started TAK Server API Microservice')).toBe('api');
    expect(phaseIn('Starting TAK Server api Microservice')).toBeUndefined();
  });

  it('of a log that is emptied is read from its beginning', () => {
    release = releasePrograms();
    const path = join(release.home, 'one.log');
    writeFileSync(path, 'old\n');
    let text = '';
    const look = follow(path, (chunk) => (text += chunk.toString()));
    appendFileSync(path, 'new\n');
    look();
    truncateSync(path, 0);
    appendFileSync(path, 'a\n');
    look();
    expect(text).toBe('new\na\n');
  });
});
