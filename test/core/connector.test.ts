// Which of several addresses of the core a connection leads to, over connections that are played.

import type { SecureContext, TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import { describe, expect, it } from 'vitest';
import { CoreConnector } from '../../shared/core/connector.ts';

const ADDRESSES = ['https://core:8443', 'https://core-2:8443', 'https://[fd00::3]'];

/** `down`: the hosts that refuse. `tried`: in this order. */
function world(addresses = ADDRESSES) {
  const down = new Set<string>();
  const tried: string[] = [];
  const options: buildConnector.BuildOptions[] = [];
  const from: unknown[] = [];
  const socket = { destroy: () => socket } as unknown as TLSSocket;
  const build = (given: buildConnector.BuildOptions = {}): buildConnector.connector => {
    options.push(given);
    return ({ hostname, localAddress }, done) => {
      tried.push(hostname);
      from.push(localAddress);
      queueMicrotask(() => (down.has(hostname) ? done(new Error(`${hostname} refused`), null) : done(null, socket)));
    };
  };
  const connector = new CoreConnector(addresses, {} as SecureContext, build);
  const connect = (localAddress?: string): Promise<string> =>
    new Promise((resolve) => {
      const target = { hostname: 'ignored', protocol: 'https:', port: '1', ...(localAddress && { localAddress }) };
      connector.connect(target, (...[error]) => resolve(error?.message ?? 'connected'));
    });
  /** The result, and what was tried for it. */
  const attempt = async (): Promise<string[]> => {
    tried.length = 0;
    return [await connect(), ...tried];
  };
  return { connector, connect, attempt, down, options, from };
}

describe('a connection', () => {
  it('leads to the first address that can be reached', async () => {
    const { connector, attempt, down } = world();
    expect(connector.reached).toBeUndefined();
    expect(await attempt()).toEqual(['connected', 'core']);
    expect(connector.reached).toBe('https://core:8443');
    down.add('core').add('core-2');
    expect(await attempt()).toEqual(['connected', 'core', 'core-2', 'fd00::3']);
    expect(connector.reached).toBe('https://[fd00::3]');
  });

  it('begins with the address that was reached last, and tries each once', async () => {
    const { connector, attempt, down } = world();
    down.add('core');
    await attempt();
    expect(await attempt()).toEqual(['connected', 'core-2']);
    down.add('core-2').add('fd00::3');
    expect(await attempt()).toEqual(['core refused', 'core-2', 'fd00::3', 'core']);
    expect(connector.reached).toBeUndefined();
    down.clear();
    expect(await attempt()).toEqual(['connected', 'core-2']);
  });

  it('comes from the given source address', async () => {
    const { connect, from, down } = world();
    down.add('core');
    await connect('127.0.0.2');
    expect(from).toEqual(['127.0.0.2', '127.0.0.2']);
  });

  it('has less time where there is a next address', () => {
    expect(world().options.map(({ timeout }) => timeout)).toEqual([2_000, 2_000, 2_000]);
    expect(world(['https://core:8443']).options.map(({ timeout }) => timeout)).toEqual([5_000]);
  });
});

describe('the first address', () => {
  it('is back when another one is in use and it answers again', async () => {
    const { connector, attempt, down } = world();
    down.add('core');
    await attempt();
    expect(await connector.isFirstBack()).toBe(false);
    down.clear();
    expect(await connector.isFirstBack()).toBe(true);
  });

  it('is not looked for while it is in use', async () => {
    const { connector, attempt, down } = world();
    await attempt();
    down.add('core');
    expect(await connector.isFirstBack()).toBe(false);
    expect(await attempt()).toEqual(['connected', 'core', 'core-2']);
  });
});
