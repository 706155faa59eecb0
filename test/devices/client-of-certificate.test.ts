import { expect, it } from 'vitest';
import { clientOfCertificate, type Enrolled } from '../../shared/devices/connections/clients.ts';

const at = (second: number): string => new Date(Date.UTC(2026, 2, 4, 5, 0, second)).toISOString();
const certificate = (hash: string, second: number, revokedAt: string | null = null): Enrolled => ({
  hash,
  clientUid: 'A',
  issuedAt: at(second),
  revokedAt,
});
const OLD = certificate('OLD', 0);
const NEW = certificate('NEW', 30);
const connected = (since: string | null, all: Enrolled[] = [OLD, NEW]): string[] =>
  all.filter((each) => clientOfCertificate(each, all, [{ uid: 'A', since }]) !== undefined).map(({ hash }) => hash);

it('leaves a connection that began before a certificate was issued to the one before', () => {
  expect([connected(at(10)), connected(at(27)), connected(at(28)), connected(at(40))]).toEqual([
    ['OLD'],
    ['OLD'],
    ['NEW'],
    ['NEW'],
  ]);
  expect(connected(at(10), [NEW])).toEqual([]);
});

it('takes the newest where the core does not say since when', () => {
  expect(connected(null)).toEqual(['NEW']);
});

it('shows none that is revoked, and no device without a name, as connected', () => {
  expect(connected(at(40), [OLD, certificate('NEW', 30, at(50))])).toEqual(['OLD']);
  expect(clientOfCertificate({ ...OLD, clientUid: '' }, [OLD], [{ uid: '', since: null }])).toBeUndefined();
});
