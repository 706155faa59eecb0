// How much of the product one deactivation passes: whoever changes it has to know these files.

import { Session } from 'node:inspector/promises';
import { describe, expect, it } from 'vitest';
import { revocationWorld } from '../devices/fake-revocation-world.ts';
import { ROOT } from '../house.ts';

const MAX_FILES = 25;
/** What every request passes: the API, its reading of HTTP, who asks, and small machinery. */
const EVERY_REQUEST = new Set(['functions', 'shared/http', 'shared/sign-in', 'packages/kit']);
/** What is about deactivating: the person, the rules of accounts, certificates, the audit log, and what health remembers. */
const FEATURES_PASSED = ['shared/audit', 'shared/devices', 'shared/health', 'shared/identity', 'shared/people'];

/** Product files of which at least one function ran during `work`. */
async function filesPassed(work: () => Promise<void>): Promise<string[]> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await work();
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const ran = result.filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)));
    const paths = ran.map(({ url }) => url.replace(/^file:\/\//, '').replace(/\?.*$/, ''));
    const ours = paths.filter((path) => path.startsWith(ROOT)).map((path) => path.slice(ROOT.length + 1));
    return [...new Set(ours)].filter((path) => /^(functions|jobs|shared|packages)\//.test(path)).toSorted();
  } finally {
    session.disconnect();
  }
}

const featureOf = (file: string): string =>
  file
    .split('/')
    .slice(0, file.startsWith('functions/') ? 1 : 2)
    .join('/');

describe('DELETE /api/users/{id}', () => {
  it('passes few files in few folders', async () => {
    const world = await revocationWorld();
    const { id } = await world.account({ username: 'ada' });
    await world.made('ada');
    world.core.online('ada');
    const expiresAt = '2030-01-01T00:00:00.000Z';
    const token = { name: 'script', scope: 'users', owner: 'webadmin', expiresAt } as const;
    const authorization = `Bearer ${(await world.deps.signIns.createToken(token)).text}`;
    const files = await filesPassed(async () => {
      expect((await world.ask('DELETE', `/api/users/${id}`, undefined, { authorization })).status).toBe(200);
    });
    expect(await world.revocations('ada')).toMatchObject([{ state: 'revoked' }]);
    expect(files.length, files.join('\n')).toBeLessThanOrEqual(MAX_FILES);
    const features = new Set(files.map(featureOf).filter((feature) => !EVERY_REQUEST.has(feature)));
    expect([...features]).toEqual(FEATURES_PASSED);
  });
});
