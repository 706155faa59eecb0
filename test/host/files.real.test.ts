import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { jsonLog } from '@holdfast/kit/log';
import { Secret } from '@holdfast/kit/secret';
import { rotateLogs } from '@holdfast/stack/process/process-log';
import { assetDirectory, logDirectory } from '../../shared/host/machine.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-files-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('the log directory', () => {
  it('names the *.log files only, and never follows a link', async () => {
    for (const name of ['b.log', 'a.log', 'a.log.1', 'secret.json']) writeFileSync(join(directory, name), 'x\n');
    mkdirSync(join(directory, 'dir.log'));
    symlinkSync('/etc/passwd', join(directory, 'passwd.log'));
    const logs = logDirectory(directory);
    expect(await logs.names()).toEqual(['a', 'b']);
    for (const name of ['passwd', '../x', 'a.log', 'dir', '', 'secret.json'])
      expect(await logs.tail(name, 5)).toBeUndefined();
  });

  it('gives the last lines, oldest first, of small and of large files, with and without a final line break', async () => {
    writeFileSync(join(directory, 'empty.log'), '');
    writeFileSync(join(directory, 'open.log'), 'one\ntwo\nthree');
    const many = Array.from({ length: 20_000 }, (_, index) => `line ${index} äöü`);
    writeFileSync(join(directory, 'large.log'), `${many.join('\n')}\n`);
    const logs = logDirectory(directory);
    expect(await logs.tail('empty', 5)).toEqual([]);
    expect(await logs.tail('open', 2)).toEqual(['two', 'three']);
    expect(await logs.tail('open', 50)).toEqual(['one', 'two', 'three']);
    for (const count of [1, 200, 5000]) expect(await logs.tail('large', count)).toEqual(many.slice(-count));
  });

  it('says without a directory where logs are instead', async () => {
    const logs = logDirectory(undefined);
    for (const requested of [logs.names(), logs.tail('core', 5)])
      await expect(requested).rejects.toMatchObject({
        code: 'not_supported',
        message: expect.stringContaining('docker compose logs'),
      });
  });
});

describe('assets', () => {
  it('are read by name only', async () => {
    writeFileSync(join(directory, 'page.css'), 'a{}');
    for (const name of ['page.html', 'page.txt']) writeFileSync(join(directory, name), '<p>');
    const files = { [directory]: ['page.css', 'page.txt'] };
    const assets = assetDirectory({ files, docs: directory });
    expect((await assets.read('page.css'))?.contentType).toBe('text/css; charset=utf-8');
    writeFileSync(join(directory, 'other.css'), 'b{}');
    expect((await assets.read('docs/page.html'))?.contentType).toBe('text/html; charset=utf-8');
    const places = ['page.html', 'other.css', '../page.css', '/etc/hosts.js', '.css'];
    const documents = ['none.html', '../page.css', 'page.txt', '.css', 'a/page.css', ''].map((name) => `docs/${name}`);
    for (const name of [...places, ...documents]) expect([name, await assets.read(name)]).toEqual([name, undefined]);
  });
});

describe('the JSON log', () => {
  it('collects lines, writes them together, and shows no secret', () => {
    const written: string[] = [];
    const log = jsonLog({
      role: 'test',
      now: () => new Date(0),
      write: (bytes) => written.push(Buffer.from(bytes).toString()),
    });
    log.info('user.created', { password: new Secret('hunter2'), nested: { key: new Secret('hunter2') } });
    log.warn('disk.low');
    expect(written).toEqual([]);
    log.flush();
    expect(written).toHaveLength(1);
    const lines = (written[0] ?? '')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toEqual([
      {
        time: '1970-01-01T00:00:00.000Z',
        level: 'info',
        role: 'test',
        event: 'user.created',
        password: '***',
        nested: { key: '***' },
      },
      { time: '1970-01-01T00:00:00.000Z', level: 'warn', role: 'test', event: 'disk.low' },
    ]);
    log.flush();
    expect(written).toHaveLength(1);
  });

  it('writes by itself after a moment', async () => {
    const written: string[] = [];
    jsonLog({ role: 'test', write: (bytes) => written.push(Buffer.from(bytes).toString()) }).error('x.failed');
    await new Promise((tick) => setTimeout(tick, 150));
    expect(written).toHaveLength(1);
  });
});

describe('log rotation', () => {
  it('moves a log over its limit aside, keeps three, and loses nothing of a writer that appends', () => {
    const path = join(directory, 'a.log');
    for (let round = 1; round <= 5; round++) {
      appendFileSync(path, `${String(round).repeat(100)}\n`);
      expect(rotateLogs(directory, 50)).toEqual(['a.log']);
    }
    expect(readdirSync(directory).toSorted()).toEqual(['a.log', 'a.log.1', 'a.log.2', 'a.log.3']);
    expect(readFileSync(`${path}.1`, 'utf8')).toContain('555');
    expect(readFileSync(`${path}.3`, 'utf8')).toContain('333');
    expect(rotateLogs(directory, 50)).toEqual([]);
  });
});
