// The last attempts to enroll: what 8446 remembers, how much of it, and who may ask.

import { beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../../test/http/fake-deps.ts';
import { EnrollmentAttempts } from '../enrollment/events.ts';
import { adminWorld, byCertificate } from './fake-core-admin.ts';
import { ADA_SIGNS_IN, type EnrollmentWorld, enrollmentWorld } from './fake-core-enrollment.ts';
import { opensslRequest } from './fake-signing-requests.ts';

const TLS = '/Marti/api/tls';
const SIGN = `${TLS}/signClient/v2?clientUid=ANDROID-1&version=3`;
let request: string;
beforeAll(() => {
  request = opensslRequest().pem;
});

const enroll = (world: EnrollmentWorld, authorization = ADA_SIGNS_IN, body = request, address = '192.0.2.7') =>
  world.ask(SIGN, { method: 'POST', headers: { authorization }, body, address });
const reported = (world: EnrollmentWorld, username?: string) =>
  world.attempts.list(username).map(({ username: name, result, reason }) => [name, result, reason]);

describe('an attempt to enroll', () => {
  it('is remembered when it was signed, with device, address and time', async () => {
    const world = await enrollmentWorld();
    expect((await enroll(world)).status).toBe(200);
    expect(world.attempts.list('ADA')).toEqual([
      {
        at: '2026-11-22T10:00:00.500Z',
        address: '192.0.2.7',
        username: 'ada',
        clientUid: 'ANDROID-1',
        result: 'signed',
        reason: '',
      },
    ]);
  });

  it('is remembered with its reason when it was refused, newest first', async () => {
    const world = await enrollmentWorld();
    await enroll(world, basic('Ada', 'wrong'));
    world.later(1000);
    await enroll(world, ADA_SIGNS_IN, 'no request');
    world.later(1000);
    world.directory.mood = 'down';
    await enroll(world);
    expect(reported(world, 'ada')).toEqual([
      ['ada', 'refused', expect.stringMatching(/does not answer/)],
      ['ada', 'refused', expect.stringMatching(/\w/)],
      ['Ada', 'refused', 'the directory refused the username or password'],
    ]);
    expect(JSON.stringify(world.attempts.list())).not.toContain('wrong');
  });

  it('is remembered when its address is locked, and left out when it says no name', async () => {
    const world = await enrollmentWorld();
    for (let count = 0; count < 10; count++) await enroll(world, basic('bob', 'wrong'));
    expect((await enroll(world)).status).toBe(429);
    await world.ask(SIGN, { method: 'POST', body: request, address: '192.0.2.8' });
    expect(reported(world, 'ada')).toEqual([['ada', 'refused', 'too many wrong passwords came from this address']]);
    expect(world.attempts.list()).toHaveLength(11);
  });
});

describe('what is remembered', () => {
  const attempt = (username: string, reason = 'r') => ({
    username,
    clientUid: 'u',
    address: 'a',
    result: 'refused' as const,
    reason,
  });

  it('is at most 20 of a name and 2,000 in all, the oldest going first', () => {
    const attempts = new EnrollmentAttempts(() => new Date(0));
    attempts.add(attempt('old'));
    for (let count = 0; count < 30; count++) attempts.add(attempt('Ada', `r${count}`));
    expect(attempts.list('ada').map(({ reason }) => reason)).toEqual(
      Array.from({ length: 20 }, (_, at) => `r${29 - at}`),
    );
    for (let count = 0; count < 2_000; count++) attempts.add(attempt(`n${count}`));
    expect([attempts.list().length, attempts.list('old'), attempts.list('ada')]).toEqual([2_000, [], []]);
  });

  it('gives up the attempts of locked addresses before all others', () => {
    const attempts = new EnrollmentAttempts(() => new Date(0));
    attempts.add(attempt('ada'));
    for (let count = 0; count < 5_000; count++) attempts.add(attempt(`n${count}`), { expendable: true });
    expect([attempts.list().length, attempts.list('ada').length]).toEqual([2_000, 1]);
  });

  it('is a refused connection too, once for each reason and address, as it was last', () => {
    let nowMs = 0;
    const attempts = new EnrollmentAttempts(() => new Date((nowMs += 1000)));
    const refused = { username: 'Ada', address: 'a', reason: 'its certificate is revoked' };
    attempts.add(attempt('ada'));
    for (let count = 0; count < 30; count++) attempts.addRefusedConnection(refused);
    attempts.addRefusedConnection({ ...refused, username: 'bob' });
    attempts.addRefusedConnection({ ...refused, reason: 'the account is not active' });
    expect(attempts.list('ada').map(({ at, result, reason }) => [at, result, reason])).toEqual([
      ['1970-01-01T00:00:33.000Z', 'not connected', 'the account is not active'],
      ['1970-01-01T00:00:31.000Z', 'not connected', 'its certificate is revoked'],
      ['1970-01-01T00:00:01.000Z', 'refused', 'r'],
    ]);
    for (let count = 0; count < 5_000; count++) attempts.addRefusedConnection({ ...refused, username: `n${count}` });
    expect(attempts.list('ada').map(({ result }) => result)).toEqual(['refused']);
  });

  it('is one line each, shortened', () => {
    const attempts = new EnrollmentAttempts(() => new Date(0));
    attempts.add({ ...attempt(`a\n${'b'.repeat(500)}`, 'x'.repeat(5_000)), clientUid: 'u\u0007'.repeat(100) });
    attempts.add(attempt(' '));
    const [only, ...others] = attempts.list();
    expect(others).toEqual([]);
    expect([only?.username.length, only?.reason.length, only?.clientUid.length]).toEqual([150, 300, 80]);
    expect(JSON.stringify(only)).not.toMatch(/\\n|\\u0007/);
    expect(attempts.list(only?.username)).toHaveLength(1);
  });
});

describe('GET /Marti/api/tls/attempts', () => {
  it('tells administrators of one name, newest first, and nobody else', async () => {
    let nowMs = Date.parse('2026-11-22T10:00:00.500Z');
    const enrollmentAttempts = new EnrollmentAttempts(() => new Date((nowMs += 1000)));
    for (const username of ['ada', 'ada-lovelace', 'Ada'])
      enrollmentAttempts.add({ username, clientUid: 'u', address: '192.0.2.7', result: 'signed', reason: '' });
    const world = adminWorld({ enrollmentAttempts });
    const answer = await world.ask('GET', '/Marti/api/tls/attempts?username=ADA');
    expect([answer.status, answer.body]).toMatchObject([
      200,
      {
        version: '3',
        type: 'EnrollmentAttempt',
        data: [
          { at: '2026-11-22T10:00:03.500Z', username: 'Ada', clientUid: 'u', result: 'signed', reason: '' },
          { at: '2026-11-22T10:00:01.500Z', username: 'ada', address: '192.0.2.7' },
        ],
      },
    ]);
    expect((await world.ask('GET', '/Marti/api/tls/attempts', { as: byCertificate('ada') })).status).toBe(403);
    world.end();
  });
});
