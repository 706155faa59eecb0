import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SimulationOrder } from '../../shared/simulation/port.ts';
import { SimulatorProcess } from '../../shared/simulation/process.ts';
import { testPki } from '../core/fake-test-pki.ts';

const PROGRAM = join(import.meta.dirname, '../../scripts/simulate.ts');
let order: SimulationOrder;
/** Takes connections, and says nothing. */
let silent: Server;

beforeAll(async () => {
  const pki = await testPki();
  const { key, certificate } = await pki.client('svc_exercise');
  silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const pem = [key, certificate, pki.ca.certificate].join('\n');
  order = { places: [{ host: '127.0.0.1', port }], pem, clients: 2, seconds: 60, ramp: 0, every: 1 };
});
afterAll(() => silent.close());

describe('the process of a simulation', () => {
  it('says why it has failed', async () => {
    const simulator = new SimulatorProcess(PROGRAM);
    await simulator.start('one', { ...order, places: [{ host: '127.0.0.1', port: 1 }] });
    await expect.poll(() => simulator.report('one'), { timeout: 20_000 }).toMatchObject({ phase: 'failed' });
    expect((await simulator.report('one'))?.error).toContain('127.0.0.1:1 did not take connection 1: ECONNREFUSED');
    await simulator.forget('one');
    expect(await simulator.report('one')).toBeUndefined();
  });

  it('says with what it has ended when it says nothing itself', async () => {
    const simulator = new SimulatorProcess(join(import.meta.dirname, 'no-such-program.ts'));
    await expect(simulator.room()).rejects.toMatchObject({ code: 'not_supported' });
    await simulator.start('one', order);
    await expect.poll(() => simulator.report('one'), { timeout: 20_000 }).toMatchObject({ phase: 'failed' });
    expect((await simulator.report('one'))?.error).toMatch(/^The simulator ended with 1: /);
  });

  it('ends with the process that has started it', async () => {
    const child = spawn(process.execPath, [PROGRAM, '--worker'], { stdio: ['pipe', 'pipe', 'inherit'] });
    child.stdin.write(`${JSON.stringify(order)}\n`);
    await once(child.stdout, 'data');
    child.stdin.end();
    const [code] = (await once(child, 'exit')) as [number];
    expect(code).toBe(1);
  });
});
