// What the module says of certificates of people and of revocations that are not proven.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import type { CoreCertificate } from '../../shared/core/port.ts';
import { certificates } from '../../shared/health/modules/certificates.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { atDay, fakeMonitored, history, NOW, type World, world } from './fake-monitored.ts';

let around: World;
beforeEach(() => {
  around = world();
  // Without the one of the probe: each test says who has which.
  around.core.certificates.splice(0);
});

const measure = (): Promise<Measurement> => certificates.measure(fakeMonitored(around), DEFAULT_THRESHOLDS, history());

function enrolled(username: string, days: number, more: Partial<CoreCertificate> = {}): CoreCertificate {
  const made = around.core.enrolledByDevice(username, more.clientUid);
  return Object.assign(made, { expiresAt: atDay(days), ...more });
}

const ago = (seconds: number): string => new Date(NOW.getTime() - seconds * 1000).toISOString();

describe('a certificate of a user', () => {
  it.each([
    [31, 'ok'],
    [29.5, 'warning'],
    [6.5, 'critical'],
    [-1, 'critical'],
    [-6.9, 'critical'],
    [-9, 'ok'],
  ])('with %f days left is %s', async (days, status) => {
    enrolled('ada', days);
    const { status: found, message, data } = await measure();
    expect(found).toBe(status);
    if (status !== 'ok') expect(message).toContain(' of ada');
    expect(data['issued_count']).toBe(days === -9 ? 0 : 1);
  });

  it('is named with its file, its owner and its end, the first to end first', async () => {
    const [late, soon] = [enrolled('zoe', 25), enrolled('ada', 12)];
    await around.certificateStore.remember({ ...soon, name: 'phone' });
    const { message, data } = await measure();
    expect(message).toMatch(/^ada~phone\.p12 of ada: the certificate expires in 12 days/);
    expect(data['issued']).toEqual([
      { file: 'ada~phone.p12', username: 'ada', expires_at: soon.expiresAt, days_left: 12 },
      {
        file: expect.stringMatching(/^[0-9a-f]{16}\.pem$/),
        username: 'zoe',
        expires_at: late.expiresAt,
        days_left: 25,
      },
    ]);
    expect(data['least_days_left']).toBe(12);
  });

  it('that is revoked, or was replaced by a newer one of the same device, worries nobody', async () => {
    enrolled('ada', 3, { revokedAt: ago(60), clientUid: 'A' });
    enrolled('bob', 3, { issuedAt: atDay(-300), clientUid: 'B' });
    enrolled('bob', 200, { clientUid: 'B' });
    expect(await measure()).toMatchObject({ status: 'ok', data: { issued_count: 1 } });
  });

  it('that the core does not tell of is a warning, never ok', async () => {
    around.core.mood = 'down';
    expect(await measure()).toMatchObject({
      status: 'warning',
      againSeconds: 60,
      message: expect.stringContaining("couldn't check issued certificates: The core does not answer"),
      data: { issued_count: null },
    });
  });
});

describe('a revocation', () => {
  const wanted = async (seconds: number): Promise<string> => {
    const certificate = enrolled('eve', 200);
    await around.certificateStore.wantRevoked([certificate], ago(seconds));
    return certificate.hash;
  };

  it('of a moment ago is a note, one without proof after twenty seconds critical', async () => {
    await wanted(3);
    expect((await measure()).status).toBe('note');
    around = world();
    await wanted(21);
    expect(await measure()).toMatchObject({ status: 'critical', data: { unproven_count: 1 } });
  });

  it('is counted with all the others, though no more than 200 are shown', async () => {
    const all = Array.from({ length: 230 }, () => enrolled('eve', 200));
    await around.certificateStore.wantRevoked(all, ago(21));
    await around.certificateStore.order({ username: 'ada', wantedAt: ago(21) });
    const { data } = await measure();
    expect([data['unproven_count'], (data['unproven'] as unknown[]).length]).toEqual([231, 200]);
  });

  it('is critical at once while the core does not answer', async () => {
    await wanted(1);
    around.core.mood = 'down';
    const { status, message } = await measure();
    expect([status, message]).toEqual([
      'critical',
      expect.stringMatching(/is not proven after 1 second: the core does not answer/),
    ]);
  });

  it('that does not hold is critical at once, with what was seen', async () => {
    const hash = await wanted(1);
    await around.certificateStore.settle(hash, {
      state: 'revocation_failed',
      checkedAt: ago(0),
      problem: 'a new connection with it was let in.',
      streams: null,
    });
    const { status, message } = await measure();
    expect([status, message]).toEqual([
      'critical',
      expect.stringMatching(
        /^the revocation of a certificate of eve \(.{11}…\) does not hold: a new connection with it was let in/,
      ),
    ]);
  });

  it('that was ordered while the core did not answer is critical, whatever the core says since', async () => {
    await around.certificateStore.order({ username: 'eve', wantedAt: ago(21) });
    expect(await measure()).toMatchObject({
      status: 'critical',
      message: expect.stringContaining('all certificates of eve'),
      data: { unproven: [{ username: 'eve', fingerprint: null, state: 'revoking', since: ago(21) }] },
    });
  });

  it('of everything that a user has is told as of several', async () => {
    await around.certificateStore.order({ username: 'eve', wantedAt: ago(3) });
    expect((await measure()).message).toBe('all certificates of eve are being revoked.');
    await wanted(3);
    expect((await measure()).message).toContain('(and 1 more)');
  });

  it('is worth nothing where the canary failed', async () => {
    await around.certificateStore.recordCanary({
      at: ago(60),
      ok: false,
      signed: true,
      problem: 'It still heard.',
      coreStartedAt: null,
    });
    expect(await measure()).toMatchObject({
      status: 'critical',
      message: 'the revocation canary failed: It still heard.',
    });
  });

  it('says that nobody can enroll where the core did not sign, and not that a revocation failed', async () => {
    const unsigned = { ok: false, signed: false, problem: 'It answers 500.', coreStartedAt: null };
    await around.certificateStore.recordCanary({ at: ago(60), ...unsigned });
    expect(await measure()).toMatchObject({
      status: 'critical',
      message: "the core doesn't sign certificates, so no device can enroll: It answers 500.",
    });
  });

  it('that nobody can look up is critical', async () => {
    around.certificateStore.openRevocations = () =>
      Promise.reject(new AppError('unavailable', 'Our own database is away'));
    expect(await measure()).toMatchObject({
      againSeconds: 60,
      message: expect.stringContaining("couldn't read which revocations are proven: Our own database is away"),
    });
  });
});
