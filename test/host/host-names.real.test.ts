import { spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isIpAddress } from '@holdfast/kit/addresses';
import { hostNames } from '../../shared/host/machine.ts';
import type { Resolution } from '../../shared/host/port.ts';

const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-names-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Resolves in a process that has another file in the place of a system file. */
async function resolveWith(file: string, text: string, name: string, withinMs: number): Promise<Resolution> {
  const own = join(directory, 'own');
  writeFileSync(own, text);
  const script = `const { hostNames } = await import(${JSON.stringify(resolve('shared/host/machine.ts'))});
    console.log(JSON.stringify(await hostNames({ withinMs: ${withinMs} }).resolve(${JSON.stringify(name)})));`;
  const shell = 'mount --bind "$0" "$1" && exec "$2" --input-type=module -e "$3"';
  const child = spawn('unshare', ['-m', 'sh', '-c', shell, own, file, process.execPath, script]);
  return JSON.parse((await child.stdout.toArray()).join('')) as Resolution;
}

describe('a host name', () => {
  it('has the addresses of this machine when it is localhost', async () => {
    const { addresses, error } = await hostNames().resolve('localhost');
    expect(error).toBeUndefined();
    expect(addresses).toContain('127.0.0.1');
  });

  it('may be an address, which is its own, in its normal spelling and without zone', async () => {
    const names = hostNames();
    expect(await names.resolve('192.0.2.7')).toEqual({ addresses: ['192.0.2.7'], error: undefined });
    expect(await names.resolve('2001:DB8:0:0::0:1')).toEqual({ addresses: ['2001:db8::1'], error: undefined });
    expect(await names.resolve('fe80::A%lo')).toEqual({ addresses: ['fe80::a'], error: undefined });
    expect(await names.resolve('::ffff:192.0.2.7')).toEqual({ addresses: ['::ffff:192.0.2.7'], error: undefined });
  });

  it('has no address and a reason when it does not exist', async () => {
    const { addresses, error } = await hostNames().resolve('no-such-host.invalid');
    expect(addresses).toEqual([]);
    expect(error).toMatch(/^(no such name|name servers are not answering right now)$/);
  });

  it('has no address and a reason when it is none, and nothing is thrown', async () => {
    for (const name of ['', 'a b', 'nul\0byte', 'x'.repeat(300), '-.-']) {
      const { addresses, error } = await hostNames().resolve(name);
      expect(addresses).toEqual([]);
      expect(error).toMatch(/./);
    }
  });

  it.runIf(mayMount)('has every address of the hosts file, each once', async () => {
    const hosts = ['192.0.2.1', '2001:DB8::0:1', '192.0.2.2', '192.0.2.1'].map((each) => `${each} many.test`);
    const { addresses, error } = await resolveWith('/etc/hosts', `${hosts.join('\n')}\n`, 'many.test', 5000);
    expect(addresses.toSorted()).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
    expect(error).toBeUndefined();
  });

  it.runIf(mayMount)('is given up when the name server says nothing for too long', async () => {
    const silent = createSocket('udp4');
    silent.bind(53, '127.0.0.77');
    await once(silent, 'listening');
    const configuration = 'nameserver 127.0.0.77\noptions timeout:2 attempts:1\n';
    try {
      expect(await resolveWith('/etc/resolv.conf', configuration, 'slow.example', 300)).toEqual({
        addresses: [],
        error: 'no answer within 0.3 s',
      });
      const { error } = await resolveWith('/etc/resolv.conf', configuration, 'slow.example', 20_000);
      expect(error).toBe('name servers are not answering right now');
    } finally {
      silent.close();
    }
  });
});

describe('the own addresses', () => {
  it('are those of every interface, loopback too, each once', async () => {
    const addresses = await hostNames().ownAddresses();
    expect(addresses).toContain('127.0.0.1');
    expect(new Set(addresses).size).toBe(addresses.length);
    const ipv4 = Object.values(networkInterfaces()).flatMap(
      (all) => all?.filter(({ family }) => family === 'IPv4') ?? [],
    );
    for (const { address } of ipv4) expect(addresses).toContain(address);
  });

  it('are plain: no zone, no prefix length', async () => {
    const addresses = await hostNames().ownAddresses();
    expect(addresses.filter((address) => !isIpAddress(address))).toEqual([]);
  });
});
