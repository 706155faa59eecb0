// The right of the admin API at a release: what management writes into the spool, what the
// release's user manager makes of it, and what stands in the users file afterwards.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EMPTY_USERS, readUsersDocument, withEntry } from '@holdfast/core/admin/users-document';
import { adminGrantSpool } from '../../../shared/people/service-accounts/admin-grants.ts';
import { type TestCertificate, testPki, type TestPki } from '../../../test/core/fake-test-pki.ts';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { carryOutGrants, grantPauseMs } from '../release-core/rights.ts';
import { releasePrograms, type ReleasePrograms } from './release-programs.ts';

/** Writes down how it was called, and does to the users file what a release's own does. */
const MANAGER = `
echo "\${@:3}" >> "$RELEASE_HOME/calls"
case "$4" in
  certmod) cp "$RELEASE_HOME/after-grant.xml" "$RELEASE_HOME/UserAuthenticationFile.xml"; cat "\${@: -1}" > "$RELEASE_HOME/shown.pem" ;;
  usermod) cp "$RELEASE_HOME/after-take.xml" "$RELEASE_HOME/UserAuthenticationFile.xml" ;;
esac
`;

let pki: TestPki;
let other: TestPki;
let release: ReleasePrograms;
let log: ReturnType<typeof memoryLog>;
let over: AbortController;
let working: Promise<void>;
const records = new Map<string, Date | null>();

beforeAll(async () => {
  pki = await testPki();
  other = await testPki();
});
afterAll(() => {
  for (const { directory } of [pki, other]) rmSync(directory, { recursive: true });
});
beforeEach(() => {
  release = releasePrograms();
  release.userManagerIs(MANAGER);
  mkdirSync(at('certs/files'), { recursive: true });
  writeFileSync(at('certs/files/ca.pem'), pki.ca.certificate);
  writeFileSync(at('UserAuthenticationFile.xml'), EMPTY_USERS);
  writeFileSync(at('after-take.xml'), EMPTY_USERS);
  log = memoryLog();
  over = new AbortController();
  records.clear();
});
afterEach(async () => {
  over.abort();
  await working;
  release.remove();
});

const at = (name: string): string => join(release.home, name);
const poll = <T>(read: () => T) => expect.poll(read, { timeout: 30_000, interval: 25 });
const calls = (): string[] => (existsSync(at('calls')) ? readFileSync(at('calls'), 'utf8').trim().split('\n') : []);
const waiting = (): string[] => (existsSync(at('admin-grants')) ? readdirSync(at('admin-grants')) : []);
const events = (): string[] => log.events.map(({ event }) => event);

function begin(options: { withinMs?: number } = {}): void {
  working = carryOutGrants({
    home: release.home,
    environment: release.environment,
    byHash: async (hash) => (records.has(hash) ? { revocationDate: records.get(hash) ?? null } : undefined),
    log,
    signal: over.signal,
    lookEveryMs: 20,
    pauseMs: () => 20,
    ...options,
  });
}

async function enrolled(name: string): Promise<TestCertificate> {
  const made = await pki.client(name);
  records.set(made.signed.hash, null);
  const entry = { identifier: name, fingerprint: made.signed.hash, role: 'ROLE_ADMIN' as const };
  writeFileSync(at('after-grant.xml'), withEntry(readUsersDocument(EMPTY_USERS), entry));
  return made;
}

describe('a right that management asks for', () => {
  it('is given by the user manager with that certificate, once', { timeout: 60_000 }, async () => {
    const { certificate } = await enrolled('svc_x');
    begin();
    await adminGrantSpool(at('admin-grants')).give('svc_x', certificate);
    await poll(events).toContain('core.admin_right_given');
    expect(waiting()).toEqual([]);
    expect(calls()).toEqual([expect.stringMatching(/^utils\/UserManager\.jar certmod -A \S+\/certificate\.pem$/)]);
    expect(readFileSync(at('shown.pem'), 'utf8').trim()).toBe(certificate.trim());
    // Asked for again, it is there already.
    await adminGrantSpool(at('admin-grants')).give('svc_x', certificate);
    await poll(() => events().filter((event) => event === 'core.admin_right_given')).toHaveLength(2);
    expect(calls()).toHaveLength(1);
  });

  it('is asked for until it stands in the file, whatever the user manager says', { timeout: 60_000 }, async () => {
    const { certificate } = await enrolled('svc_x');
    release.userManagerIs('echo "messaging is not there"; exit 0');
    begin();
    await adminGrantSpool(at('admin-grants')).give('svc_x', certificate);
    await poll(() => JSON.stringify(log.events)).toContain('messaging is not there');
    expect(events()).not.toContain('core.admin_right_given');
    release.userManagerIs(MANAGER);
    await poll(events).toContain('core.admin_right_given');
  });

  it('does not wait for ever for a user manager that hangs', { timeout: 60_000 }, async () => {
    const { certificate } = await enrolled('svc_x');
    release.userManagerIs('exec sleep 1000');
    begin({ withinMs: 300 });
    await adminGrantSpool(at('admin-grants')).give('svc_x', certificate);
    await poll(() => JSON.stringify(log.events)).toContain('exited with signal SIGKILL');
    release.userManagerIs(MANAGER);
    over.abort();
  });

  it('ends a user manager that throws and hangs, and says what it threw', { timeout: 60_000 }, async () => {
    const { certificate } = await enrolled('svc_x');
    const thrown = 'Exception in thread "main" java.lang.IllegalStateException: no users file';
    release.userManagerIs(`echo '${thrown}' >&2; echo '  at tak.server.X.main(X.java:7)' >&2; exec sleep 1000`);
    begin();
    await adminGrantSpool(at('admin-grants')).give('svc_x', certificate);
    await poll(() => JSON.stringify(log.events)).toContain('exited with signal SIGKILL: Exception in thread');
    expect(JSON.stringify(log.events)).toContain('no users file');
    over.abort();
  });

  it.each([
    ['of another CA', 'svc_x', () => other.client('svc_x'), 'not of this CA'],
    ['of another name', 'svc_x', () => enrolled('svc_y'), 'that of "svc_y"'],
    ['that the core has not recorded', 'svc_x', () => pki.client('svc_x'), 'not recorded'],
    ['that has expired', 'svc_x', () => pki.client('svc_x', { from: new Date(0), to: new Date(1e12) }), 'expired'],
    ['of management itself', 'svc_api', () => enrolled('svc_api'), "the core's own matter"],
  ] as const)(
    'is refused for a certificate %s, and no program is started',
    { timeout: 60_000 },
    async (_, name, make, reason) => {
      const { certificate } = await make();
      begin();
      await adminGrantSpool(at('admin-grants')).give(name, certificate);
      await poll(waiting).toEqual([`${name}.pem.refused`]);
      await poll(() => JSON.stringify(log.events)).toContain(JSON.stringify(reason).slice(1, -1));
      expect(calls()).toEqual([]);
    },
  );

  it('is refused for a certificate that is revoked', { timeout: 60_000 }, async () => {
    const { certificate, signed } = await enrolled('svc_x');
    records.set(signed.hash, new Date());
    begin();
    await adminGrantSpool(at('admin-grants')).give('svc_x', certificate);
    await poll(waiting).toEqual(['svc_x.pem.refused']);
  });
});

describe('a right that is taken', () => {
  beforeEach(async () => {
    await enrolled('svc_x');
    writeFileSync(at('UserAuthenticationFile.xml'), readFileSync(at('after-grant.xml')));
  });

  it.each([
    ['is forgotten and written down by the user manager', EMPTY_USERS],
    ['is struck out of the file when the release has only forgotten it', undefined],
  ])('%s', { timeout: 60_000 }, async (_, after) => {
    writeFileSync(at('after-take.xml'), after ?? readFileSync(at('after-grant.xml')));
    begin();
    await adminGrantSpool(at('admin-grants')).take('svc_X');
    await poll(events).toContain('core.admin_right_taken');
    expect(calls()).toEqual(['utils/UserManager.jar usermod -D svc_x']);
    expect(readUsersDocument(readFileSync(at('UserAuthenticationFile.xml'), 'utf8')).entries).toEqual([]);
  });

  it('is tried again when the user manager fails, and stays in force until then', { timeout: 60_000 }, async () => {
    release.userManagerIs('exit 1');
    begin();
    await adminGrantSpool(at('admin-grants')).take('svc_x');
    await poll(events).toContain('core.admin_grant_waits');
    expect(readFileSync(at('UserAuthenticationFile.xml'), 'utf8')).toContain('svc_x');
    release.userManagerIs(MANAGER);
    await poll(events).toContain('core.admin_right_taken');
  });

  it('is tried again after some seconds at first, and ever more seldom', () => {
    expect([1, 2, 3, 4, 5, 500].map(grantPauseMs)).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it('that nobody has needs no program', { timeout: 60_000 }, async () => {
    begin();
    await adminGrantSpool(at('admin-grants')).take('svc_other');
    await poll(events).toContain('core.admin_right_taken');
    expect(calls()).toEqual([]);
  });
});
