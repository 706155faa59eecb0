// The stream: what it delivers for each CPU-second and how soon, against a broadcaster that copies
// bytes; what it stores, against a bare loop of inserts; what a reader that stops costs the others;
// memory. `HOLDFAST_BENCH_COT` names parts of it, with commas.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { latency, ONE_TO_HUNDRED, TEN_BY_TEN, throughput } from './cot-fan-out.ts';
import { madeFiles, startBare, startStream } from './cot-servers.ts';
import { manyConnections, slowReader } from './cot-slow.ts';
import { archiveIdle, storage, streamOf } from './cot-storage.ts';
import { benchStack } from './stack.ts';

const PARTS = ['flood', 'latency', 'slow', 'storage', 'stack', 'many'];
const wanted = (process.env['HOLDFAST_BENCH_COT'] ?? PARTS.join(',')).split(',');
const has = (...parts: string[]): boolean => parts.some((part) => wanted.includes(part));

export async function run(): Promise<void> {
  const unknown = wanted.filter((part) => !PARTS.includes(part));
  if (unknown.length > 0) {
    throw new Error(
      `HOLDFAST_BENCH_COT: there is no part ${unknown.join(', ')}. Remedy: choose from ${PARTS.join(', ')}`,
    );
  }
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bench-cot-'));
  try {
    if (has('flood', 'latency', 'slow')) await withoutDatabase(directory);
    if (has('storage', 'stack', 'many')) await onTheStack(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function withoutDatabase(directory: string): Promise<void> {
  const files = await madeFiles(join(directory, 'fan-out'));
  const bare = await startBare(files);
  const stream = await startStream(files);
  const core = { ...stream, which: 'stream without database' };
  try {
    if (has('flood')) {
      for (const shape of [ONE_TO_HUNDRED, TEN_BY_TEN]) await throughput(bare, core, shape);
    }
    if (has('latency')) {
      await latency(bare, core, TEN_BY_TEN, 200);
      await latency(bare, core, ONE_TO_HUNDRED, 50);
    }
    if (has('slow')) await slowReader(stream);
  } finally {
    await bare.end();
    await stream.end();
  }
}

async function onTheStack(directory: string): Promise<void> {
  const stack = await benchStack();
  const bare = await startBare(await madeFiles(join(directory, 'stack')));
  try {
    const stream = await streamOf(stack, directory);
    if (has('many')) await manyConnections(stream);
    if (has('storage')) await storage(stack, stream);
    if (has('stack')) {
      const core = { ...stream, which: 'real stack, stored', idle: () => archiveIdle(stack) };
      for (const shape of [ONE_TO_HUNDRED, TEN_BY_TEN]) await throughput(bare, core, shape);
      await latency(bare, core, TEN_BY_TEN, 200);
      await latency(bare, core, ONE_TO_HUNDRED, 50);
    }
  } finally {
    await bare.end();
    stack.stop();
  }
}
