// A core of a test's own beside the one of a stack: the same database and directory, a CA and ports
// of its own, and nobody who starts it again.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import { planEmbedded } from '@holdfast/stack/embedded-plan';
import { cleanEnvironment, freeOffset, home, type TestStack } from './embedded.ts';

export interface OwnCore {
  /** {data_dir} */
  directory: string;
  api: string;
  enrollment: string;
  streaming: string;
  /** Resolves when it listens; rejects when it ends before. */
  start(): Promise<void>;
  /** Starts, and is alone from then on; resolves when it is gone. */
  startOrphaned(): Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** Not started yet. */
export async function ownCore(stack: TestStack, directory: string): Promise<OwnCore> {
  const args = {
    embedded: true,
    data: stack.data,
    offset: stack.offset,
    env: '/dev/null',
    listen: undefined,
    detach: true,
    flows: false,
  };
  const plan = planEmbedded(home, args, {});
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  const offset = await freeOffset();
  const given = JSON.parse(plan.core.environment[CORE_VARIABLE] ?? '{}') as CoreHandover;
  const handover: CoreHandover = {
    ...given,
    directory,
    apiPort: 8443 + offset,
    enrollmentPort: 8446 + offset,
    streamingPort: 8089 + offset,
  };
  let child: ChildProcess | undefined;

  function spawned(): ChildProcess {
    child = spawn(process.execPath, [join(home, 'dist/core.js')], {
      env: cleanEnvironment({ [CORE_VARIABLE]: JSON.stringify(handover) }),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    return child;
  }

  return {
    directory,
    api: `https://127.0.0.1:${handover.apiPort}`,
    enrollment: `https://127.0.0.1:${handover.enrollmentPort}`,
    streaming: `tls://127.0.0.1:${handover.streamingPort}`,
    async start() {
      const started = spawned();
      const [what] = (await Promise.race([once(started, 'message'), once(started, 'exit')])) as [unknown];
      if (typeof what !== 'object' || what === null) throw new Error(`the core ended with ${String(what)}`);
    },
    async startOrphaned() {
      const started = spawned();
      const gone = once(started, 'exit');
      started.disconnect();
      await gone;
    },
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
