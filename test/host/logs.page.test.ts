import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { readLogLine } from '../../functions/console/logs.tsx';
import { visit, type Visitor } from '../pages/page-session.ts';

const OURS = [
  '{"time":"2026-03-04T05:06:07.000Z","level":"info","role":"management","event":"user.created","username":"ada"}',
  '{"time":"2026-03-04T05:06:08.000Z","level":"warn","role":"management","event":"alert.failed","reason":"no route to host"}',
  '{"time":"2026-03-04T05:06:09.000Z","level":"error","role":"management","event":"http.failed"}',
];
const LOGS: Record<string, string[]> = {
  core: ['2026-03-04 05:06:07 ERROR the grid is away', '<img src=x onerror=alert(1)>'],
  management: OURS,
};
let visitor: Visitor;
beforeEach(async () => {
  visitor = await visit();
  visitor.deps.logFiles = {
    names: async () => Object.keys(LOGS),
    tail: async (name, lines) => LOGS[name]?.slice(-lines),
  };
});

describe('the page of logs', () => {
  it('shows the end of our own log first, the newest last, with the ways to the others', async () => {
    const html = await visitor.page('/logs');
    expect(html).toContain('href="/logs?name=management" aria-current="page"');
    expect(html).toContain('href="/logs?name=core"');
    expect(html.indexOf('user.created')).toBeLessThan(html.indexOf('http.failed'));
    expect(html).toMatch(/<li class="day">2026-03-04<\/li>.*<time>05:06:08 <\/time>/);
    expect(html).toContain('<span> reason=&quot;no route to host&quot;</span>');
  });

  it('leaves out what it causes itself by following the log', async () => {
    const own = '{"time":"2026-03-04T05:06:09.000Z","level":"info","event":"http.request","path":"/logs","status":304}';
    visitor.deps.logFiles.tail = async () => [...OURS, own, own.replace('/logs', '/jobs')];
    const html = await visitor.page('/logs');
    expect(html.match(/http\.request/g)).toHaveLength(1);
    expect(html).toContain('path=/jobs');
  });

  it('marks warnings and errors in color and in a word', async () => {
    const html = await visitor.page('/logs');
    expect(html).toMatch(/<li class="warning">.*?<b>WARN <\/b>alert.failed/);
    expect(html).toMatch(/<li class="critical">.*?<b>ERROR <\/b>http.failed/);
    expect(await visitor.page('/logs?name=core')).toMatch(/<li class="critical">2026-03-04 05:06:07 ERROR the grid/);
  });

  it('searches within the lines whatever the case, and can leave out what is well', async () => {
    const found = await visitor.page('/logs?name=management&search=NO+route');
    expect(found).toContain('1 line of the last 3');
    expect(found).not.toContain('user.created');
    const bad = await visitor.page('/logs?name=management&only=bad');
    expect(bad).toContain('2 lines of the last 3');
    expect(await visitor.page('/logs?search=nothing+such')).toContain(
      'No matching lines. Try a shorter search or more lines.',
    );
  });

  it('takes as many lines as asked for, of those that can be chosen', async () => {
    const requests: number[] = [];
    visitor.deps.logFiles.tail = async (_, lines) => {
      requests.push(lines);
      return [];
    };
    for (const tail of ['', '?tail=2000', '?tail=999999', '?tail=x']) await visitor.page(`/logs${tail}`);
    expect(requests).toEqual([200, 2000, 200, 200]);
  });

  it('follows the log until it is paused, and keeps the rest of the choice', async () => {
    const html = await visitor.page('/logs?name=core&tail=500&search=grid');
    expect(html).toContain('data-live="self"');
    expect(html).toContain('href="/logs?name=core&amp;tail=500&amp;search=grid&amp;live=off"');
    const paused = await visitor.page('/logs?name=core&live=off');
    expect(paused).not.toContain('data-live');
    expect(paused).toContain('<input type="hidden" name="live" value="off"/>');
  });

  it('shows lines as they are', async () => {
    expect(await visitor.page('/logs?name=core')).not.toContain('<img');
    expect(await visitor.page(`/logs?search=${encodeURIComponent('"><img src=x>')}`)).not.toContain('<img');
  });

  it('is 404 for a log that there is not, and says where they are when they are elsewhere', async () => {
    for (const name of ['x', '../management', ''])
      expect((await visitor.get(`/logs?name=${encodeURIComponent(name)}`)).status).toBe(404);
    visitor.deps.logFiles.names = () => Promise.reject(new AppError('not_supported', 'The engine keeps them.'));
    expect(await visitor.page('/logs')).toContain('The engine keeps them.');
    visitor.deps.logFiles.names = async () => [];
    expect(await visitor.page('/logs')).toContain('No logs yet.');
  });
});

describe('a line of a log', () => {
  it.each([
    ['plain words', { level: undefined, text: 'plain words', rest: '', atMs: undefined }],
    ['LOG: 3 WARNING signs', { level: 'warning' }],
    ['FATAL: role "x" does not exist', { level: 'critical' }],
    ['no error at all', { level: undefined }],
    ['{"level":"error","ts":1700000000.5,"logger":"http","msg":"no"}', { level: 'critical', atMs: 1_700_000_000_500 }],
    ['{"timestamp":"2026-01-01T00:00:00","level":"warning","event":"slow"}', { level: 'warning', text: 'slow' }],
    ['{"event":"a","msg":"b","n":1}', { text: 'a', rest: 'b n=1' }],
    ['{"ts":1e300,"msg":"far"}', { atMs: undefined, text: 'far' }],
    ['{"broken', { text: '{"broken', rest: '' }],
    ['{"no":"words"}', { text: '{"no":"words"}' }],
  ])('%s', (line, expected) => {
    expect(readLogLine(line)).toMatchObject(expected);
  });
});
