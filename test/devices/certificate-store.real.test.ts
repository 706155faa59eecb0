// What Holdfast knows of certificates, in tables that no job works on: the contract, and what two processes do at once.

import { beforeAll, describe, expect, it } from 'vitest';
import { keptDatabase, type RunSql } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { certificateStoreTable } from '../../shared/devices/certificates/records.ts';
import { enrollmentTokenTable } from '../../shared/devices/enrollment/token-table.ts';
import { MIGRATIONS } from '../../shared/runtime/migrations/index.ts';
import { emptyDatabase } from '../e2e/embedded/empty-database.ts';
import { certificate, certificateStoreContract, enrollmentTokensContract } from './certificate-store-contract.ts';

const OPTIONS = { name: 'certificates-test', called: 'our own database', variable: 'DATABASE_URL', withinMs: 20_000 };
const AT = '2026-03-04T05:06:07.089Z';

const { url, inDatabase } = emptyDatabase();
let run: RunSql;
beforeAll(async () => {
  const ours = MIGRATIONS.filter(({ name }) => ['certificates', 'canary-signed'].includes(name));
  for (const { sql } of ours) await inDatabase(sql);
  run = keptDatabase(new Secret(url()), OPTIONS);
});

const emptied = async () => {
  await inDatabase('TRUNCATE certificate_made, certificate_revocation, revocation_order, canary_run, enrollment_token');
  return certificateStoreTable(run);
};

certificateStoreContract('in the database', emptied);
enrollmentTokensContract('in the database', () => enrollmentTokenTable(run));

describe('the book of certificates in the database', () => {
  it('notes a certificate once, though many processes note it at once', async () => {
    const store = await emptied();
    const all = Array.from({ length: 50 }, () => certificate('john'));
    await Promise.all(Array.from({ length: 8 }, () => store.wantRevoked(all, AT)));
    expect(await store.revocations(['john'])).toHaveLength(50);
  });

  it('keeps what is proven, though another process settles it at the same moment', async () => {
    const history = await emptied();
    const one = certificate('john');
    await history.wantRevoked([one], AT);
    const settled = { checkedAt: AT, problem: null, streams: null };
    const states = ['revoking', 'revoked', 'revocation_failed', 'revoking', 'revocation_failed'] as const;
    await Promise.all(states.map((state) => history.settle(one.hash, { ...settled, state })));
    expect(await history.openRevocations(9)).toEqual([]);
  });

  it('keeps the last hundred canaries', async () => {
    const records = await emptied();
    const at = (minute: number) => new Date(Date.parse(AT) + minute * 60_000).toISOString();
    for (let minute = 0; minute < 105; minute++)
      await records.recordCanary({
        at: at(minute),
        ok: false,
        signed: true,
        problem: 'was let in',
        coreStartedAt: null,
      });
    const count = `SELECT count(*)::int AS count, min(at) AS first FROM canary_run`;
    expect([...(await inDatabase(count))]).toEqual([{ count: 100, first: new Date(at(5)) }]);
    expect(await records.lastCanary()).toMatchObject({ at: at(104) });
  });

  it('says so while the database is away', async () => {
    const nowhere = keptDatabase(new Secret('postgres://nobody:nothing@127.0.0.1:1/nowhere'), OPTIONS);
    const refusal = { code: 'unavailable', message: expect.stringContaining('Our own database does not answer') };
    await expect(certificateStoreTable(nowhere).hasOpenWork()).rejects.toMatchObject(refusal);
    await expect(enrollmentTokenTable(nowhere).of(1)).rejects.toMatchObject(refusal);
  });
});
