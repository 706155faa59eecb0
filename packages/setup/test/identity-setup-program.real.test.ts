// identity-setup as its container runs it: a process with one variable, whose end the other
// containers go by.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type FakeAuthentik, fakeAuthentik } from './authentik.ts';

const PROGRAM = resolve(import.meta.dirname, '../../../scripts/identity-setup.ts');
const BOOTSTRAP = 'bootstrap-token-0123456789-abcdefgh';
const MANAGEMENT = 'management-token-0123456789-abcdefgh';

let authentik: FakeAuthentik;
let directory: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  authentik = await fakeAuthentik(BOOTSTRAP, MANAGEMENT);
  directory = mkdtempSync(join(tmpdir(), 'holdfast-outpost-'));
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await authentik.close();
  rmSync(directory, { recursive: true, force: true });
});

/** What it said, and its exit code; `told` is given what has been said so far. */
async function run(
  reported: (running: ChildProcess) => void = () => undefined,
): Promise<{ message: string; code: unknown }> {
  const handover = {
    url: authentik.url,
    bootstrapToken: BOOTSTRAP,
    managementToken: MANAGEMENT,
    keyFile: join(directory, 'token'),
  };
  const running = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM], {
    env: { PATH: process.env['PATH'], HOLDFAST_IDENTITY_SETUP: JSON.stringify(handover) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child = running;
  let message = '';
  for (const stream of [running.stdout, running.stderr])
    stream.on('data', (chunk: Buffer) => void (message += chunk.toString('utf8')));
  reported(running);
  const [code, signal] = (await once(running, 'close')) as [number | null, string | null];
  return { message, code: code ?? signal };
}

it('ends with 0 when authentik is ready, and says what it changed, without a key', async () => {
  const { message, code } = await run();
  expect([code, readFileSync(join(directory, 'token'), 'utf8')]).toEqual([0, 'key-of-the-outpost']);
  expect(message).toContain('"event":"identity-setup.done"');
  expect(message).toContain('the LDAP outpost has a new key');
  for (const secret of [BOOTSTRAP, MANAGEMENT, 'key-of-the-outpost']) expect(message).not.toContain(secret);
});

it('ends with 1 and one line that says why, with a remedy', async () => {
  authentik.blueprint.enabled = false;
  const { message, code } = await run();
  expect(code).toBe(1);
  expect(JSON.parse(message.trim())).toMatchObject({
    level: 'error',
    event: 'identity-setup.failed',
    error: expect.stringContaining('is disabled'),
    remedy: expect.stringContaining('enable it'),
  });
});

it('told to stop while it waits, it ends as not done', async () => {
  authentik.isReady = false;
  const { code } = await run((running) => {
    const requested = setInterval(() => {
      if (authentik.calls.length === 0) return;
      clearInterval(requested);
      running.kill('SIGTERM');
    }, 20);
    running.once('close', () => clearInterval(requested));
  });
  expect(code).toBe(1);
});
