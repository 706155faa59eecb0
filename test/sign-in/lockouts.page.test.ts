import { beforeEach, describe, expect, it } from 'vitest';
import { visit, type Visitor } from '../pages/page-session.ts';

const LOCKED = [
  { address: '192.0.2.66', door: 'http', failures: 10, locked_until: '2026-01-02T03:19:00.000Z' },
  { address: '2001:db8:0:1::/64', door: 'http', failures: 10, locked_until: '2026-01-02T03:29:00.000Z' },
];
let visitor: Visitor;
let released: string[];
beforeEach(async () => {
  visitor = await visit();
  visitor.around.now = new Date('2026-01-02T03:14:00.000Z');
  released = [];
  visitor.deps.authenticator.lockouts = async () => LOCKED;
  visitor.deps.authenticator.release = async (address) => {
    released.push(address);
    return LOCKED.some((each) => each.address === address);
  };
  visitor = { ...visitor };
});

describe('the lockouts page', () => {
  it('shows the locked-out addresses with their time left, and unlocks them after a confirmation', async () => {
    const html = await visitor.page('/lockouts');
    expect(html).toContain('<code class="whole">192.0.2.66</code>');
    expect(html).toContain('5 minutes left');
    expect(html).toContain('Unlock 2001:db8:0:1::/64');
    expect(html).toContain('data-live="self"');
  });

  it('says that there are no lockouts', async () => {
    visitor.deps.authenticator.lockouts = async () => [];
    expect(await visitor.page('/lockouts')).toContain('No lockouts.');
  });

  it.each(LOCKED.map(({ address }) => address))('unlocks %s and audits it', async (address) => {
    const answer = await visitor.post('/lockouts/release', { address });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/lockouts?done=released']);
    expect(released).toEqual([address]);
    expect(visitor.deps.audit.records.at(-1)).toMatchObject({ action: 'lockout.release', target: address });
    expect(await visitor.page('/lockouts?done=released')).toContain('Address unlocked.');
  });

  it('says that an address was not locked out', async () => {
    const answer = await visitor.post('/lockouts/release', { address: '192.0.2.1' });
    expect(answer.headers.get('location')).toBe('/lockouts?done=free');
    expect(await visitor.page('/lockouts?done=free')).toContain('was no longer locked out');
  });

  it('refuses a form without an address', async () => {
    expect((await visitor.post('/lockouts/release')).status).toBe(422);
    expect(released).toEqual([]);
  });
});
