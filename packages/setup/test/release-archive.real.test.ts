// Release archives that are broken or wicked, written byte by byte: each is refused with a
// sentence, and leaves nothing.

import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StackError } from '@holdfast/kit/app-error';
import { zipArchive, type ZipEntry } from '../../../test/support/zip-archive.ts';
import { largeEntry, patched, withZip64 } from '../../../test/support/zip-patches.ts';
import { LIMITS, ReleaseArchive } from '../archive/archive.ts';
import { withRelease } from '../archive/reading.ts';
import { unpackRelease } from '../archive/unpack.ts';
import { madeUpRelease, releaseEntries } from './release-archive.ts';
import { releaseProgram } from './release-world.ts';

const TOP = 'takserver-docker-5.7-RELEASE-8';
const NAME = `${TOP}.zip`;
const asRoot = process.getuid?.() === 0;
const run = promisify(execFile);

let program: string;
let place: string;
let releases: string;

beforeAll(() => {
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-release-program-'));
  program = join(directory, 'release.mjs');
  writeFileSync(program, releaseProgram());
});
afterAll(() => rmSync(join(program, '..'), { recursive: true }));
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'holdfast-archive-'));
  releases = join(place, 'release');
  mkdirSync(releases);
});
afterEach(() => rmSync(place, { recursive: true }));

const archive = (bytes: Buffer, name = NAME): string => {
  writeFileSync(join(place, name), bytes);
  return join(place, name);
};
const withEntry = (...add: ZipEntry[]): Buffer => zipArchive(releaseEntries({ add }));

/** The program of setup.sh. */
async function ran(command: 'inspect' | 'unpack' | 'installed', subject: string) {
  const args = [program, command, subject, '--releases', releases];
  try {
    const { stdout, stderr } = await run(process.execPath, args);
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

describe('a release archive', { timeout: 30_000 }, () => {
  it('is unpacked with the modes that a container needs, whatever the archive and the umask say', async () => {
    const odd = withEntry(
      { name: `${TOP}/tak/plain.sh`, bytes: '#!/bin/sh\n', mode: 0o100600 },
      { name: `${TOP}/tak/tool`, bytes: 'x', mode: 0o106711 },
      { name: `${TOP}/tak/secret`, bytes: 'x', mode: 0o100000 },
      { name: `${TOP}/tak/of-windows`, bytes: 'x', mode: 0 },
      { name: `${TOP}/tak/empty/`, mode: 0o040000 },
      { name: `${TOP}/tak/Käse`, bytes: '' },
    );
    const umask = process.umask(0o077);
    const answer = await ran('unpack', archive(odd)).finally(() => process.umask(umask));
    const directory = /^directory=(\.new-\w{6})\n$/.exec(answer.stdout)?.[1] ?? '';
    const mode = (path: string): string => (statSync(join(releases, directory, path)).mode & 0o7777).toString(8);
    expect(
      ['', 'tak/plain.sh', 'tak/tool', 'tak/secret', 'tak/of-windows', 'tak/empty', 'tak/Käse', 'tak'].map(mode),
    ).toEqual(['755', '755', '755', '644', '644', '755', '644', '755']);
    const record: unknown = JSON.parse(readFileSync(join(releases, directory, '.holdfast-archive.json'), 'utf8'));
    expect(record).toMatchObject({
      archive: NAME,
      version: '5.7-RELEASE-8',
      variant: 'docker',
      files: expect.any(Number),
    });
  });

  it('is known with its size, and as unpacked once its own bytes are', async () => {
    const path = madeUpRelease({ directory: place });
    const before = await ran('inspect', path);
    expect(before.stdout).toMatch(
      /^version=5\.7-RELEASE-8\nvariant=docker\ncore_dockerfile=docker\/Dockerfile\.takserver\ndatabase_dockerfile=docker\/Dockerfile\.takserver-db\npostgres=15\nschema=99\njava=17\nbytes=\d+\nunpacked=no\n$/,
    );
    const { stdout } = await ran('unpack', path);
    const from = join(releases, stdout.trim().slice('directory='.length));
    spawnSync('mv', [from, join(releases, '5.7-RELEASE-8')]);
    expect((await ran('inspect', path)).stdout).toContain('unpacked=yes');
    expect((await ran('installed', '5.7-RELEASE-8')).stdout).toContain('unpacked=yes');
    // The same release in other bytes is another archive.
    const other = archive(withEntry({ name: `${TOP}/tak/more`, bytes: 'x' }), 'other.zip');
    expect((await ran('inspect', other)).stdout).toContain('unpacked=no');
  });

  it('of the 64 bit kind is read as any other', async () => {
    const entries = [
      { name: 'a/', bytes: '' },
      { name: 'a/b', bytes: 'text' },
    ];
    const opened = await ReleaseArchive.open(archive(withZip64(zipArchive(entries))), NAME);
    const [, file] = opened.entries;
    expect(opened.entries.map(({ name }) => name)).toEqual(['a/', 'a/b']);
    expect(file === undefined ? '' : await opened.text(file, 100)).toBe('text');
    opened.close();
  });

  it('unpacks in little memory, however large a file is', async () => {
    const large = largeEntry(`${TOP}/tak/lib/large.jar`, 200 * 1024 * 1024);
    const path = archive(zipArchive([...releaseEntries(), large]));
    // Of the program alone: what resourceUsage() says counts the process that it was forked from.
    const tell =
      'data:text/javascript,import {readFileSync} from "node:fs";process.on("exit",()=>process.stderr.write(readFileSync("/proc/self/status")))';
    const args = ['--import', tell, program, 'unpack', path, '--releases', releases];
    const { stderr } = await run(process.execPath, args);
    const peakKb = Number(/VmHWM:\s+(\d+) kB/.exec(stderr)?.[1]);
    expect(peakKb).toBeGreaterThan(20 * 1024);
    expect(peakKb).toBeLessThan(150 * 1024);
  });
});

describe('refused is an archive', { timeout: 30_000 }, () => {
  const good = (): Buffer => zipArchive(releaseEntries());

  it.each<[what: string, bytes: () => Buffer, says: string, name?: string]>([
    ['that is none', () => Buffer.from('hello'), `${NAME} is not a zip archive.`],
    ['that is empty', () => Buffer.alloc(0), `${NAME} is not a zip archive.`],
    ['that is a web page', () => Buffer.from('<!DOCTYPE html>'), `${NAME} is not a zip archive.`],
    [
      'for Red Hat',
      () => Buffer.from('edabeedb03000000', 'hex'),
      'takserver-5.7.rpm is a package for',
      'takserver-5.7.rpm',
    ],
    [
      'for Debian',
      () => Buffer.from('!<arch>\ndebian-binary'),
      'takserver-5.7.deb is a package for',
      'takserver-5.7.deb',
    ],
    ['that is a tar', () => tar(), 'takserver.zip is a tar archive', 'takserver.zip'],
    ['that is a packed tar', () => gzipSync(tar()), 'takserver.tar.gz is a tar archive', 'takserver.tar.gz'],
    ['that was cut off', () => good().subarray(0, -500), `${NAME} is truncated or damaged`],
    ['of which half is here', () => good().subarray(0, good().length / 2), `${NAME} is truncated or damaged`],
    ['whose end names too many entries', () => patched(good(), { endEntries: 500 }), `${NAME} is truncated or damaged`],
    [
      'with an absolute name',
      () => withEntry({ name: '/etc/passwd', bytes: 'x' }),
      '"/etc/passwd" has an absolute name',
    ],
    ['that leads out', () => withEntry({ name: `${TOP}/../x`, bytes: 'x' }), `"${TOP}/../x" leads out of its folder`],
    ['with a backslash', () => withEntry({ name: `${TOP}\\tak\\x`, bytes: 'x' }), 'has a backslash in its name'],
    [
      'with a control character',
      () => withEntry({ name: `${TOP}/\u001b[2J`, bytes: 'x' }),
      String.raw`/\u001b[2J" has control characters`,
    ],
    [
      'with two names for one file',
      () => withEntry({ name: `${TOP}/TAK/setenv.sh`, bytes: 'x' }),
      'would be the same file',
    ],
    [
      'with a link',
      () => withEntry({ name: `${TOP}/tak/x`, bytes: '/etc/passwd', mode: 0o120777 }),
      'is neither a file nor a directory (such as a link)',
    ],
    [
      'with a device',
      () => withEntry({ name: `${TOP}/tak/x`, mode: 0o060600 }),
      'is neither a file nor a directory (such as a link)',
    ],
    [
      'with a file beside its folder',
      () => withEntry({ name: 'README.txt', bytes: 'x' }),
      '"README.txt" is outside its folder',
    ],
    [
      'with another folder',
      () => zipArchive([{ name: 'tak/x', bytes: 'x' }]),
      'its folder is "tak", not takserver-docker-<version>',
    ],
    ['without entries', () => zipArchive([]), `${NAME} is not a TAK Server release`],
    ['without a version', () => zipArchive(releaseEntries({ without: ['tak/version.txt'] })), 'has no tak/version.txt'],
    [
      'without Dockerfiles',
      () => zipArchive(releaseEntries({ without: ['docker'] })),
      'has no docker/Dockerfile.takserver and no',
    ],
    [
      'that lacks programs: all of them are named',
      () => zipArchive(releaseEntries({ without: ['tak/takserver.war', 'tak/utils', 'tak/certs/revokeCert.sh'] })),
      'lacks tak/certs/revokeCert.sh, tak/takserver.war, tak/utils/UserManager.jar.',
    ],
    ['older than 5.0', () => zipArchive(releaseEntries({ version: '4.10-RELEASE-50' })), '5.0 or newer is needed'],
    ['that is encrypted', () => patched(good(), { entry: 'tak/setenv.sh', flags: 1 }), 'setenv.sh" is encrypted'],
    ['that is strongly encrypted', () => patched(good(), { entry: 'tak/setenv.sh', flags: 0x41 }), 'is encrypted'],
    [
      'packed in another way',
      () => patched(good(), { entry: 'tak/setenv.sh', method: 12 }),
      'uses compression method 12',
    ],
    [
      'that is a directory with contents',
      () => withEntry({ name: `${TOP}/tak/odd/`, bytes: 'x' }),
      'odd/" is a directory with data',
    ],
    [
      'larger than any release',
      () =>
        withEntry(
          { name: `${TOP}/x`, bytes: '', claimedSize: 0xfffffffe },
          { name: `${TOP}/y`, bytes: '', claimedSize: 0xfffffffe },
          { name: `${TOP}/z`, bytes: '', claimedSize: 0xfffffffe },
          { name: `${TOP}/w`, bytes: '', claimedSize: 0xfffffffe },
        ),
      'unpacks to more than 50000 entries or 17 GB',
    ],
  ])('%s', async (_what, bytes, says, name = NAME) => {
    const path = archive(bytes(), name);
    const refused = await refusal(withRelease(path, async () => undefined));
    expect(refused.message).toContain(says);
    expect(refused.message).toMatch(/^[^\n]+\.$/);
    expect(refused.remedy).toMatch(/^[^\n]+$/);
  });

  it.each<[what: string, bytes: () => Buffer, says: string]>([
    [
      'with a wrong checksum',
      () => patched(good(), { entry: 'tak/setenv.sh', crc: 1 }),
      'wrong checksum of "takserver-docker-5.7-RELEASE-8/tak/setenv.sh"',
    ],
    ['with a flipped bit in its last file', () => flipped(), 'is damaged|truncated or damaged'],
    [
      'with a file longer than it says',
      () => withEntry({ name: `${TOP}/tak/x`, bytes: 'x'.repeat(9000), claimedSize: 10 }),
      'wrong size of "takserver-docker-5.7-RELEASE-8/tak/x"',
    ],
    [
      'with a file shorter than it says',
      () => withEntry({ name: `${TOP}/tak/x`, bytes: 'x', claimedSize: 9000 }),
      'wrong size of "takserver-docker-5.7-RELEASE-8/tak/x"',
    ],
    [
      'whose entry points nowhere',
      () => patched(good(), { entry: 'tak/setenv.sh', offset: 7 }),
      'is truncated or damaged at',
    ],
  ])('%s, and what was unpacked is removed', async (_what, bytes, says) => {
    const unpacked = withRelease(archive(bytes()), (opened, release, top) =>
      unpackRelease(opened, top, { archive: NAME, sha256: '0'.repeat(64), ...release }, releases, () => undefined),
    );
    expect((await refusal(unpacked)).message).toMatch(new RegExp(says.replaceAll('.', String.raw`\.`)));
    expect(readdirSync(releases)).toEqual([]);
  });

  it('in words with a remedy, by the program that setup.sh calls', async () => {
    const answer = await ran('unpack', archive(patched(good(), { entry: 'tak/setenv.sh', crc: 1 })));
    expect(answer).toMatchObject({ code: 1, stdout: '' });
    expect(answer.stderr).toMatch(/^[^\n]+ is damaged: wrong checksum of [^\n]+\.\n {2}Remedy: [^\n]+\n$/);
    expect(readdirSync(releases)).toEqual([]);
  });

  async function refusal(work: Promise<unknown>): Promise<StackError> {
    const refused: unknown = await work.catch((error: unknown) => error);
    if (!(refused instanceof StackError)) throw new Error(`it was not refused: ${String(refused)}`);
    return refused;
  }

  /** Of a file that is named last; its packed bytes end before the index. */
  function flipped(): Buffer {
    const bytes = zipArchive([...releaseEntries(), { name: `${TOP}/tak/last`, bytes: 'some text that is packed' }]);
    const at = bytes.indexOf('PK\u0001\u0002') - 6;
    bytes[at] = (bytes[at] ?? 0) ^ 0x10;
    return bytes;
  }

  it('whose index alone would fill the memory', async () => {
    const entry = { name: `${TOP}/tak/x`, comment: Buffer.alloc(65_000) };
    const many = Array.from({ length: 1100 }, (_, index) => ({ ...entry, name: `${entry.name}${index}` }));
    await expect(ReleaseArchive.open(archive(zipArchive(many)), NAME)).rejects.toThrow(
      'its index has more than 67108864 bytes',
    );
  });

  it('with more entries than any release', async () => {
    const path = archive(zipArchive(['a', 'b', 'c'].map((name) => ({ name: `t/${name}` }))));
    await expect(ReleaseArchive.open(path, NAME, { ...LIMITS, entries: 2 })).rejects.toThrow('more than 2 entries');
  });

  function tar(): Buffer {
    const block = Buffer.alloc(1024);
    block.write('takserver/tak/setenv.sh');
    block.write('ustar', 257);
    return block;
  }
});

describe('the unpacking of a release', { timeout: 30_000 }, () => {
  it.runIf(asRoot)('on a disk that is too small says so, and removes what it has written', () => {
    const large = largeEntry(`${TOP}/tak/lib/large.jar`, 3 * 1024 * 1024);
    const path = archive(zipArchive([...releaseEntries(), large]));
    const script =
      'mount -t tmpfs -o size=2m tmpfs "$1" && "$2" "$3" unpack "$4" --releases "$1"; echo "$?"; ls -A "$1"';
    const { stdout, stderr } = spawnSync(
      'unshare',
      ['--mount', 'sh', '-c', script, 'sh', releases, process.execPath, program, path],
      { encoding: 'utf8' },
    );
    expect(stdout).toBe('1\n');
    expect(stderr).toMatch(/^The disk is full\. The unpacked files were removed\.\n {2}Remedy: free some space/);
  });

  it('that is killed leaves what nobody takes for a release', async () => {
    const large = largeEntry(`${TOP}/tak/lib/large.jar`, 100 * 1024 * 1024);
    const path = archive(zipArchive([...releaseEntries(), large]));
    const child = spawn(process.execPath, [program, 'unpack', path, '--releases', releases], { stdio: 'ignore' });
    const ended = once(child, 'exit');
    await expect.poll(() => readdirSync(releases).length, { timeout: 20_000, interval: 2 }).toBe(1);
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    const [left = ''] = readdirSync(releases);
    expect(left).toMatch(/^\.new-/);
    expect((await ran('installed', left)).code).toBe(1);
  });
});
