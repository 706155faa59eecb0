// The users file: rights by fingerprint and name, changes seen, broken files, entries added without
// harm to the rest.

import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StackError } from '@holdfast/kit/app-error';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { usersFile } from '../admin/users-file.ts';
import { callerOf } from '../http/route.ts';

const print = (byte: string): string => Array.from({ length: 32 }, () => byte).join(':');
const SAMPLE = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<!-- made by hand -->
<UserAuthenticationFile xmlns="http://bbn.com/marti/xml/bindings">
    <User identifier="ada" fingerprint="${print('AA')}" role="ROLE_ADMIN"/>
    <User identifier="bob" password="$2a$10$abc&amp;" passwordHashed="true" role="ROLE_READONLY">
        <groupList>Ops &lt;1&gt;</groupList>
        <groupListIN>In</groupListIN>
    </User>
    <!-- the end -->
    <User identifier="eve"/>
</UserAuthenticationFile>
`;

describe('the users file', () => {
  let folder: string;
  let path: string;
  let log: ReturnType<typeof memoryLog>;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-users-'));
    path = join(folder, 'UserAuthenticationFile.xml');
    log = memoryLog();
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const role = (file: ReturnType<typeof usersFile>, commonName: string, hash = print('00')): string =>
    file.roleOf({ commonName, hash });
  const loaded = (text: string): ReturnType<typeof usersFile> => {
    writeFileSync(path, text);
    return usersFile(path, log);
  };
  const element = (attributes: string): string =>
    `<UserAuthenticationFile xmlns="http://bbn.com/marti/xml/bindings"><User ${attributes}/></UserAuthenticationFile>`;

  it('is made when it is missing, and gives nobody a right', () => {
    const file = usersFile(path, log);
    expect(role(file, 'ada')).toBe('ROLE_ANONYMOUS');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(role(usersFile(path, log), 'ada')).toBe('ROLE_ANONYMOUS');
  });

  it('gives the right of the fingerprint, else of the name, else none', () => {
    const file = loaded(SAMPLE);
    expect(role(file, 'somebody', print('aa'))).toBe('ROLE_ADMIN');
    expect(role(file, 'bob')).toBe('ROLE_READONLY');
    expect(role(file, 'bob', print('AA'))).toBe('ROLE_ADMIN');
    expect(role(file, 'eve')).toBe('ROLE_ANONYMOUS');
    expect(role(file, 'Ada')).toBe('ROLE_ANONYMOUS');
    expect(role(file, '__proto__')).toBe('ROLE_ANONYMOUS');
  });

  it('does not open an entry with a fingerprint to another certificate of its name', () => {
    const file = loaded(SAMPLE);
    expect(role(file, 'ada')).toBe('ROLE_ANONYMOUS');
    file.grant({ identifier: 'svc_api', fingerprint: print('BB'), role: 'ROLE_ADMIN' });
    expect([role(file, 'svc_api', print('BB')), role(file, 'svc_api')]).toEqual(['ROLE_ADMIN', 'ROLE_ANONYMOUS']);
  });

  it('makes a caller of a certificate', () => {
    const certificate = { serial: '1', hash: print('aa'), commonName: 'svc', subject: 'CN=svc', channels: true };
    const file = loaded(SAMPLE);
    expect(callerOf(certificate, file)).toEqual({
      username: 'svc',
      by: 'certificate',
      role: 'ROLE_ADMIN',
      certificate,
    });
  });

  it('is read again when it has changed, also by a rename of the same size', () => {
    const file = loaded(SAMPLE);
    writeFileSync(path, SAMPLE.replace('ROLE_READONLY', 'ROLE_WEBTAK'));
    expect(role(file, 'bob')).toBe('ROLE_WEBTAK');
    writeFileSync(`${path}.other`, SAMPLE.replace('"bob"', '"rob"'));
    renameSync(`${path}.other`, path);
    expect([role(file, 'bob'), role(file, 'rob')]).toEqual(['ROLE_ANONYMOUS', 'ROLE_READONLY']);
  });

  it('keeps the last good entries while it is broken or gone, says where once, and takes the mended one', () => {
    const file = loaded(SAMPLE);
    appendFileSync(path, '<');
    const ada = (): string => role(file, 'ada', print('AA'));
    expect([ada(), ada()]).toEqual(['ROLE_ADMIN', 'ROLE_ADMIN']);
    rmSync(path);
    expect(ada()).toBe('ROLE_ADMIN');
    const notices = log.events.filter(({ event }) => event === 'core.users_file_broken');
    expect(notices.map(({ level, fields }) => [level, fields['path']])).toEqual([
      ['error', path],
      ['error', path],
    ]);
    expect(String(notices[0]?.fields['fault'])).toMatch(/^line \d+: /);
    writeFileSync(path, SAMPLE.replace('ROLE_ADMIN', 'ROLE_READONLY'));
    expect(ada()).toBe('ROLE_READONLY');
  });

  it('is tried again as long as it cannot be read at all, and says so once', () => {
    const file = loaded(SAMPLE);
    rmSync(path);
    mkdirSync(path);
    const ada = (): string => role(file, 'ada', print('AA'));
    expect([ada(), ada(), role(file, 'bob')]).toEqual(['ROLE_ADMIN', 'ROLE_ADMIN', 'ROLE_READONLY']);
    expect(log.events.filter(({ level }) => level === 'error')).toHaveLength(1);
    rmSync(path, { recursive: true });
    writeFileSync(path, SAMPLE.replace('ROLE_ADMIN', 'ROLE_WEBTAK'));
    expect(ada()).toBe('ROLE_WEBTAK');
  });

  it.each([
    ['no XML', 'garbage'],
    ['nothing', ''],
    ['half of it', SAMPLE.slice(0, 300)],
    ['another root', '<Users xmlns="http://bbn.com/marti/xml/bindings"/>'],
    ['no namespace', '<UserAuthenticationFile/>'],
    ['a document type', SAMPLE.replace('<!-- made', '<!DOCTYPE x [<!ENTITY a "b">]><!-- made')],
    ['an entity', SAMPLE.replace('"eve"', '"&eve;"')],
    ['an unknown role', element('identifier="x" role="ROLE_ROOT"')],
    ['an empty role', element('identifier="x" role=""')],
    ['no identifier', element('role="ROLE_ADMIN"')],
    ['no fingerprint', element('identifier="x" fingerprint="AA:BB"')],
  ])('refuses the start with %s, naming file and remedy', (_, text) => {
    writeFileSync(path, text);
    expect(() => usersFile(path, log)).toThrow(StackError);
    expect(() => usersFile(path, log)).toThrow(path);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('adds an entry and leaves everything else as it stands', () => {
    const file = loaded(SAMPLE);
    file.grant({ identifier: 'svc_api', fingerprint: print('bb'), role: 'ROLE_ADMIN' });
    const entry = `    <User identifier="svc_api" fingerprint="${print('BB')}" role="ROLE_ADMIN"/>\n`;
    expect(readFileSync(path, 'utf8')).toBe(SAMPLE.replace('</UserA', `${entry}</UserA`));
    expect(role(file, 'other', print('bb'))).toBe('ROLE_ADMIN');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(role(usersFile(path, log), 'svc_api', print('bb'))).toBe('ROLE_ADMIN');
  });

  it('replaces the entry of that name: the right of the old fingerprint ends, password and groups stay', () => {
    const file = loaded(SAMPLE);
    file.grant({ identifier: 'ada', fingerprint: print('CC'), role: 'ROLE_ADMIN' });
    file.grant({ identifier: 'bob', fingerprint: print('DD'), role: 'ROLE_WEBTAK' });
    expect(role(file, 'x', print('AA'))).toBe('ROLE_ANONYMOUS');
    expect([role(file, 'x', print('CC')), role(file, 'x', print('DD'))]).toEqual(['ROLE_ADMIN', 'ROLE_WEBTAK']);
    const text = readFileSync(path, 'utf8');
    expect(text).toContain('password="$2a$10$abc&amp;" passwordHashed="true"');
    expect(text).toContain('<groupList>Ops &lt;1&gt;</groupList>');
    expect(text.match(/<User /g)).toHaveLength(3);
  });

  it('leaves one entry where there were several of a name', () => {
    const twice = SAMPLE.replace('"eve"', `"ada" fingerprint="${print('EE')}" role="ROLE_ADMIN"`);
    const file = loaded(twice);
    expect(log.events).toContainEqual(expect.objectContaining({ level: 'warn', event: 'core.users_file_duplicate' }));
    file.grant({ identifier: 'ada', fingerprint: print('FF'), role: 'ROLE_ADMIN' });
    expect(['AA', 'EE', 'FF'].map((byte) => role(file, 'x', print(byte)))).toEqual([
      'ROLE_ANONYMOUS',
      'ROLE_ANONYMOUS',
      'ROLE_ADMIN',
    ]);
  });

  it('escapes what a name holds, and writes nothing that it could not read again', () => {
    const file = loaded(SAMPLE);
    file.grant({ identifier: '"><User/>&<', fingerprint: print('12'), role: 'ROLE_READONLY' });
    expect(readFileSync(path, 'utf8')).toContain('identifier="&quot;');
    expect(role(file, 'x', print('12'))).toBe('ROLE_READONLY');
    const before = readFileSync(path, 'utf8');
    expect(() => file.grant({ identifier: 'x', fingerprint: 'no print', role: 'ROLE_ADMIN' })).toThrow(StackError);
    expect(() => file.grant({ identifier: '', fingerprint: print('34'), role: 'ROLE_ADMIN' })).toThrow(StackError);
    expect(readFileSync(path, 'utf8')).toBe(before);
  });

  it('gives no right while it is broken, and does not write over it', () => {
    const file = loaded(SAMPLE);
    writeFileSync(path, 'broken');
    expect(() => file.grant({ identifier: 'x', fingerprint: print('34'), role: 'ROLE_ADMIN' })).toThrow(path);
    expect(readFileSync(path, 'utf8')).toBe('broken');
  });
});
