// Who waits for whom in the line of password checks, with work that ends when the test says so.

import { describe, expect, it } from 'vitest';
import { FairLine, type FairLineOptions, type Place, type ClientStatus } from '../passwords/fair-queue.ts';

function lineWith(options: FairLineOptions) {
  const line = new FairLine({ suspectRest: 0, ...options });
  const running: { name: string; end: (failure?: Error) => void }[] = [];
  const ended: string[] = [];

  function send(status: ClientStatus, name: string, place: Partial<Place> = {}): Promise<string | undefined> {
    const sent = line.run({ status, ...place }, async () => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      running.push({ name, end: (failure) => (failure === undefined ? resolve() : reject(failure)) });
      await promise;
      ended.push(name);
      return name;
    });
    sent.catch(() => undefined);
    return sent;
  }
  const names = (): string[] => running.map(({ name }) => name);
  async function end(name: string, failure?: Error): Promise<void> {
    const index = names().indexOf(name);
    expect(index).toBeGreaterThanOrEqual(0);
    running.splice(index, 1)[0]?.end(failure);
    await new Promise((tick) => setImmediate(tick));
  }
  return { line, send, end, names, ended };
}

describe('the line of hashes', () => {
  it('does as many at once as it has places, and the next when one ends', async () => {
    const { send, end, names } = lineWith({ places: 2 });
    for (const name of ['a', 'b', 'c']) void send('usual', name);
    expect(names()).toEqual(['a', 'b']);
    await end('a');
    expect(names()).toEqual(['b', 'c']);
  });

  it("lets the stack's own first, then the proven, the usual and suspects; each in turn", async () => {
    const { send, end, names } = lineWith({ places: 1 });
    void send('usual', 'first');
    for (const [status, name] of [
      ['suspect', 's1'],
      ['usual', 'u1'],
      ['proven', 'p1'],
      ['own', 'v1'],
      ['usual', 'u2'],
      ['own', 'v2'],
    ] as const) {
      void send(status, name);
    }
    const order: string[] = [];
    for (let turn = 0; turn < 7; turn++) {
      const [name = ''] = names();
      order.push(name);
      await end(name);
    }
    expect(order).toEqual(['first', 'v1', 'v2', 'p1', 'u1', 'u2', 's1']);
  });

  it('lets groups take turns, and within a group names: guesses for one wait behind each other alone', async () => {
    const { send, end, names } = lineWith({ places: 1 });
    void send('usual', 'first');
    for (const name of ['a1', 'a2', 'a3']) void send('usual', name, { group: 'vouched', key: 'webadmin' });
    void send('usual', 'b1', { group: 'vouched', key: 'ada' });
    for (const name of ['c1', 'c2']) void send('usual', name, { group: 'direct', key: 'ben' });
    const order: string[] = [];
    for (let turn = 0; turn < 7; turn++) {
      const [name = ''] = names();
      order.push(name);
      await end(name);
    }
    expect(order).toEqual(['first', 'a1', 'c1', 'b1', 'c2', 'a2', 'a3']);
  });

  it('keeps a place free of suspects', async () => {
    const { send, end, names } = lineWith({ places: 3 });
    for (const name of ['s1', 's2', 's3', 's4']) void send('suspect', name);
    expect(names()).toEqual(['s1', 's2']);
    void send('usual', 'u1');
    expect(names()).toEqual(['s1', 's2', 'u1']);
    await end('u1');
    expect(names()).toEqual(['s1', 's2']);
    await end('s1');
    expect(names()).toEqual(['s2', 's3']);
  });

  it('leaves the place of a suspect empty for a while, to suspects only', async () => {
    const { send, end, names } = lineWith({ places: 2, suspectRest: 4 });
    for (const name of ['s1', 's2']) void send('suspect', name);
    await new Promise((later) => setTimeout(later, 50));
    await end('s1');
    for (const name of ['u1', 'u2']) void send('usual', name);
    expect(names()).toEqual(['u1', 'u2']);
    await end('u2');
    await new Promise((later) => setTimeout(later, 100));
    expect(names()).toEqual(['u1']);
    await expect.poll(names, { timeout: 2000 }).toEqual(['u1', 's2']);
  });

  it('lets suspects in when there is only one place', async () => {
    const { send, names } = lineWith({ places: 1 });
    void send('suspect', 's1');
    expect(names()).toEqual(['s1']);
  });

  it('has at least one place', async () => {
    const { send, names } = lineWith({ places: 0 });
    void send('usual', 'u1');
    expect(names()).toEqual(['u1']);
  });

  it('turns away at once whoever would wait too long, and nobody of another standing for it', async () => {
    const { line, send, end, names } = lineWith({ places: 2, maxWaiting: { suspect: 2, usual: 1, own: 1 } });
    void send('usual', 'u1');
    for (const name of ['s1', 's2', 's3']) void send('suspect', name);
    expect(await send('suspect', 's4')).toBeUndefined();
    expect(line.waiting()).toEqual({ own: 0, proven: 0, usual: 0, suspect: 2 });
    void send('usual', 'u2');
    expect(await send('usual', 'u3')).toBeUndefined();
    const own = send('own', 'v1');
    expect(await send('own', 'v2')).toBeUndefined();
    await end('s1');
    expect(names()).toContain('v1');
    await end('v1');
    expect(await own).toBe('v1');
  });

  it('passes over what is not wanted any more when its turn comes', async () => {
    const { line, send, end, names } = lineWith({ places: 1 });
    void send('usual', 'first');
    let wanted = true;
    const left = line.run(
      { status: 'usual' },
      async () => 'done',
      () => wanted,
    );
    void send('usual', 'next');
    wanted = false;
    await end('first');
    expect(await left).toBeUndefined();
    expect(names()).toEqual(['next']);
  });

  it('goes on after work that failed, and tells whose it was', async () => {
    const { send, end, names } = lineWith({ places: 1 });
    const broken = send('usual', 'broken');
    const next = send('usual', 'next');
    await end('broken', new Error('no memory'));
    await expect(broken).rejects.toThrow('no memory');
    expect(names()).toEqual(['next']);
    await end('next');
    expect(await next).toBe('next');
  });

  it('never does more at once than it may, whatever comes', async () => {
    const line = new FairLine({ places: 3 });
    let [running, most, suspects, maxSuspects] = [0, 0, 0, 0];
    const statuses = ['own', 'usual', 'suspect'] as const;
    const all = Array.from({ length: 180 }, (_, index) => {
      const accountStatus = statuses[(index * 7) % 3] ?? 'usual';
      return line.run({ status: accountStatus }, async () => {
        running += 1;
        if (accountStatus === 'suspect') suspects += 1;
        most = Math.max(most, running);
        maxSuspects = Math.max(maxSuspects, suspects);
        await new Promise((tick) => setTimeout(tick, index % 4));
        running -= 1;
        if (accountStatus === 'suspect') suspects -= 1;
        return index;
      });
    });
    expect(await Promise.all(all)).toEqual(Array.from({ length: 180 }, (_, index) => index));
    expect([most, maxSuspects]).toEqual([3, 2]);
  });
});
