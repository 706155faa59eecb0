import { describe, expect, it } from 'vitest';
import { constantTimeEqual } from '@holdfast/kit/secret';
import { memoryRequestStatistics } from '../../shared/host/request-statistics.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { withRequestLog } from '../../shared/http/request-log.ts';
import { memoryLog } from './fake-deps.ts';

const connection = { clientAddress: '192.0.2.7', secure: true, face: 'portal' } as const;

describe('the request log', () => {
  it('writes one line per request, with its id and without its query', async () => {
    const log = memoryLog();
    const requests = memoryRequestStatistics();
    const seen: Bindings[] = [];
    let time = 1000;
    const handle = withRequestLog(
      async (_, bindings) => {
        seen.push(bindings);
        time += 12.34;
        return new Response('x', { status: 418 });
      },
      log,
      () => time,
      requests,
    );
    await handle(new Request('https://host/api/thing?token=secret', { method: 'POST' }), connection);
    await handle(new Request('https://host'), connection);
    expect(log.events.map(({ fields }) => fields)).toEqual([
      {
        request_id: seen[0]?.requestId,
        method: 'POST',
        path: '/api/thing',
        status: 418,
        ms: 12.3,
        address: '192.0.2.7',
      },
      { request_id: seen[1]?.requestId, method: 'GET', path: '/', status: 418, ms: 12.3, address: '192.0.2.7' },
    ]);
    expect(seen[0]).toMatchObject(connection);
    expect(seen[0]?.requestId).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen[0]?.requestId).not.toBe(seen[1]?.requestId);
    expect(seen[0]?.secure).toBe(true);
    expect(requests.figures().answered).toEqual([
      { method: 'GET', status: '418', count: 1 },
      { method: 'POST', status: '418', count: 1 },
    ]);
  });

  it('has no line for a health check that is well, but counts it', async () => {
    const log = memoryLog();
    const requests = memoryRequestStatistics();
    let status = 200;
    const clock = (): number => 0;
    const handle = withRequestLog(() => new Response('x', { status }), log, clock, requests);
    await handle(new Request('http://127.0.0.1/api/ping'), connection);
    expect(log.events).toEqual([]);
    expect(requests.figures().answered).toEqual([{ method: 'GET', status: '200', count: 1 }]);
    status = 503;
    await handle(new Request('http://127.0.0.1/api/ping'), connection);
    expect(log.events.map(({ fields }) => fields['path'])).toEqual(['/api/ping']);
  });

  it('keeps a synchronous answer synchronous', () => {
    const response = new Response('x');
    expect(
      withRequestLog(
        () => response,
        memoryLog(),
        () => 0,
        memoryRequestStatistics(),
      )(new Request('http://h/'), connection),
    ).toBe(response);
  });
});

describe('constantTimeEqual', () => {
  it.each([
    ['a', 'a', true],
    ['', '', true],
    ['a', 'b', false],
    ['a', 'aa', false],
    ['', 'a', false],
    ['pässword', 'pässword', true],
  ])('%s and %s: %s', async (a, b, equal) => expect(await constantTimeEqual(a, b)).toBe(equal));
});
